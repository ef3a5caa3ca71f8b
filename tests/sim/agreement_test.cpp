// Agreements of whole engines, with links that break and messages in between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agreeing_cluster.hpp"
#include "support/pattern.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using engine::AgreeOperation;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// One call of one node.
struct Agreed {
    AgreeOperation operation{};
    std::function<void()> on_done{};
    bool ended = false;

    void start(AgreeingCluster& all, std::size_t node, engine::Context& context) {
        on_done = [this] { ended = true; };
        operation.owner = &on_done;
        if (operation.timeout == Duration{}) operation.timeout = 2min;
        all.cluster.node(node).engine().start(context, operation);
        all.cluster.node(node).settle();
    }
};

/// A message, with its memory.
struct Message {
    std::size_t from = 0;
    std::size_t to = 0;
    std::vector<std::byte> content{};
    std::vector<std::byte> into{};
    port::ConstBytes shown{};
    port::Bytes place{};
    engine::SendOperation send{};
    engine::ReceiveOperation receive{};
    std::function<void()> on_sent{};
    std::function<void()> on_received{};
    bool sent = false;
    bool received = false;
};
using Messages = std::vector<std::unique_ptr<Message>>;

/// Messages with random content between the nodes that run.
class Background {
public:
    /// The messages must outlive the cluster.
    Background(AgreeingCluster& all, Messages& messages) : all_(&all), messages_(&messages) {}

    void step() {
        Message& message = *messages_->emplace_back(std::make_unique<Message>());
        const std::vector<std::size_t> running = all_->running();
        message.from = running[all_->random.below(running.size())];
        message.to = running[all_->random.below(running.size())];
        const Tag tag(messages_->size());
        message.content = pattern(messages_->size(), all_->random.below(80'000));
        message.shown = message.content;
        message.into.resize(message.content.size());
        message.place = message.into;
        message.on_sent = [&message] { message.sent = true; };
        message.on_received = [&message] { message.received = true; };
        message.send.owner = &message.on_sent;
        message.send.to = rank_at(message.to);
        message.send.tag = tag;
        message.send.content = {&message.shown, 1};
        message.receive.owner = &message.on_received;
        message.receive.pattern = {.source = rank_at(message.from), .tag = tag};
        message.receive.content = {&message.place, 1};
        start(message.from, message.send);
        start(message.to, message.receive);
    }

    bool ended() const {
        return std::ranges::all_of(*messages_, [&](const auto& one) {
            return (one->sent || !all_->runs(one->from)) && (one->received || !all_->runs(one->to));
        });
    }

    void check() const {
        for (const auto& one : *messages_) {
            if (!all_->runs(one->from) || !all_->runs(one->to)) continue;
            ASSERT_FALSE(one->send.error) << one->send.error->what();
            ASSERT_FALSE(one->receive.error) << one->receive.error->what();
            ASSERT_EQ(one->into, one->content);
        }
    }

private:
    template <class Operation>
    void start(std::size_t node, Operation& operation) {
        EngineNode& at = all_->cluster.node(node);
        at.engine().start(all_->cluster.context(node, 1), operation);
        at.settle();
    }

    AgreeingCluster* all_;
    Messages* messages_;
};

/// Kills nodes one after the other while the others agree, shrink, and agree in what they have
/// shrunk to.
class Shrinking {
public:
    Shrinking(std::uint64_t seed, std::size_t nodes)
        : all_(seed, nodes), background_(all_, messages_), contexts_(nodes) {
        for (std::size_t i = 0; i < nodes; ++i) {
            members_.push_back(i);
            contexts_[i] = &all_.cluster.context(i, 0);
        }
    }

    void run() {
        ASSERT_TRUE(all_.cluster.connect());
        all_.decide_view();
        for (const std::size_t i : members_) all_.learn_view(i);
        while (all_.running().size() > 1) {
            ASSERT_NO_FATAL_FAILURE(agree_while_one_dies());
            ASSERT_NO_FATAL_FAILURE(shrink());
        }
        ASSERT_TRUE(all_.run_until([&] { return background_.ended(); }));
        background_.check();
    }

private:
    using Calls = std::map<std::size_t, std::unique_ptr<Agreed>>;

    void call(Calls& calls, std::size_t node, wire::AgreementKind what) {
        Agreed& one = *(calls[node] = std::make_unique<Agreed>());
        one.operation.what = what;
        one.operation.flags = all_.random.next() | all_.random.next();
        one.operation.words[2] = all_.random.below(1000);
        one.start(all_, node, *contexts_[node]);
    }
    bool ended(const Calls& calls) const {
        return std::ranges::all_of(calls, [&](const auto& entry) {
            return entry.second->ended || !all_.runs(entry.first);
        });
    }

    void agree_while_one_dies() {
        const std::size_t victim = members_[all_.random.below(members_.size())];
        const std::uint64_t rounds = 3 + all_.random.below(4);
        const std::uint64_t dies_in = all_.random.below(rounds);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            Calls& calls = calls_.emplace_back();
            for (const std::size_t i : members_) {
                if (!all_.runs(i)) continue;
                background_.step();
                call(calls, i, wire::AgreementKind::agree);
                if (all_.random.chance(0.5)) wait_a_little();
            }
            if (round == dies_in) {
                wait_a_little();
                all_.kill(victim);
                all_.decide_view();
                all_.learn_view_later();
            }
            ASSERT_TRUE(all_.run_until([&] { return ended(calls); }));
            ASSERT_NO_FATAL_FAILURE(check(calls));
        }
    }

    void shrink() {
        ASSERT_TRUE(all_.run_until([&] {
            return std::ranges::all_of(all_.running(), [&](std::size_t i) {
                return all_.cluster.node(i).engine().epoch() == all_.views.back().epoch;
            });
        }));
        Calls& calls = calls_.emplace_back();
        for (const std::size_t i : all_.running()) {
            if (all_.random.chance(0.5)) wait_a_little();
            call(calls, i, wire::AgreementKind::shrink);
        }
        ASSERT_TRUE(all_.run_until([&] { return ended(calls); }));
        ASSERT_NO_FATAL_FAILURE(check(calls));
        const AgreeOperation& agreed = calls.begin()->second->operation;
        ASSERT_EQ(agreed.lost.size(), 1U);
        std::erase(members_, members_[agreed.lost.front().value()]);
        ASSERT_EQ(members_, all_.running());
        std::vector<NodeId> nodes;
        for (const std::size_t i : members_) nodes.push_back(all_.cluster.member(i));
        for (std::size_t rank = 0; rank < members_.size(); ++rank) {
            const std::size_t i = members_[rank];
            engine::Context& parent = *contexts_[i];
            EXPECT_EQ(parent.creations, agreed.creation);
            const wire::ContextOrigin origin{
                .parent = parent.id, .creation = parent.creations++, .epoch = agreed.epoch};
            engine::Engine& engine = all_.cluster.node(i).engine();
            contexts_[i] = &engine.add_context(ContextId(100 + all_.views.size()), nodes,
                                               rank_at(rank), origin);
            if (parent.id != ContextId(1)) engine.end_context(parent);
            all_.cluster.node(i).settle();
        }
    }

    /// All values are equal, and right for their view.
    void check(const Calls& calls) {
        const AgreeOperation* first = nullptr;
        for (const auto& [node, one] : calls) {
            if (!one->ended) continue;
            const AgreeOperation& result = one->operation;
            ASSERT_FALSE(result.error) << result.error->what();
            if (first == nullptr) first = &result;
            EXPECT_EQ(result.agreed_flags, first->agreed_flags);
            EXPECT_EQ(result.lost, first->lost);
            EXPECT_EQ(result.epoch, first->epoch);
            EXPECT_EQ(result.creation, first->creation);
            EXPECT_EQ(result.agreed_words, first->agreed_words);
        }
        ASSERT_NE(first, nullptr);
        const View& view = all_.views.at(first->epoch.value() - 1);
        std::uint64_t flags = ~std::uint64_t{0};
        std::uint64_t word = 0;
        std::vector<Rank> lost;
        for (std::size_t rank = 0; rank < members_.size(); ++rank) {
            const std::size_t node = members_[rank];
            if (view.find(all_.cluster.member(node)) == nullptr) {
                lost.push_back(rank_at(rank));
                continue;
            }
            flags &= calls.at(node)->operation.flags;
            word = std::max(word, calls.at(node)->operation.words[2]);
        }
        EXPECT_EQ(first->lost, lost);
        EXPECT_EQ(first->agreed_flags, flags);
        EXPECT_EQ(first->agreed_words[2], word);
    }

    void wait_a_little() { all_.cluster.world().run_for(Duration(all_.random.below(5'000'000))); }

    std::vector<Calls> calls_{};
    Messages messages_{};
    AgreeingCluster all_;
    Background background_;
    std::vector<std::size_t> members_;  // of the communicator in use, by rank
    std::vector<engine::Context*> contexts_;
};

TEST(AgreementSim, survivors_agree_and_shrink_while_nodes_die) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Shrinking shrinking(seed, 2 + seed % 6);
        ASSERT_NO_FATAL_FAILURE(shrinking.run());
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
}

/// Three nodes of which rank `late` does not call. Returns the errors of the others.
std::vector<Error> errors_without(std::size_t late, bool views,
                                  const std::function<void(AgreeingCluster&)>& then) {
    std::map<std::size_t, Agreed> calls;
    std::vector<Error> errors;
    AgreeingCluster all(7, 3);
    EXPECT_TRUE(all.cluster.connect());
    all.decide_view();
    for (std::size_t i = 0; i < 3; ++i) {
        if (views) all.learn_view(i);
        if (i == late) continue;
        calls[i].operation.timeout = 10s;
        calls[i].start(all, i, all.cluster.context(i, 0));
    }
    all.cluster.world().run_for(100ms);
    then(all);
    EXPECT_TRUE(all.run_until([&] {
        return std::ranges::all_of(calls, [](const auto& one) { return one.second.ended; });
    }));
    for (const auto& [i, one] : calls) {
        EXPECT_TRUE(one.operation.error);
        if (one.operation.error) errors.push_back(*one.operation.error);
    }
    return errors;
}

TEST(AgreementSim, every_rank_names_the_one_that_does_not_call) {
    for (const std::size_t late : {0U, 1U, 2U}) {
        SCOPED_TRACE(late);
        const auto errors = errors_without(late, true, [](AgreeingCluster&) {});
        ASSERT_EQ(errors.size(), 2U);
        for (const Error& error : errors) {
            EXPECT_EQ(error.code(), Errc::timed_out);
            EXPECT_THAT(error.cause(), HasSubstr("waited 10.0 s in agree #0 for rank " +
                                                 std::to_string(late) + ";"));
            EXPECT_EQ(error.rank(), static_cast<int>(late));
        }
    }
}

TEST(AgreementSim, a_lost_link_ends_an_agreement_only_without_views) {
    const auto lose = [](AgreeingCluster& all) { all.kill(2); };
    for (const Error& error : errors_without(2, false, lose)) {
        EXPECT_EQ(error.code(), Errc::link_closed) << error.what();
        EXPECT_EQ(error.rank(), 2);
    }
    for (const Error& error : errors_without(2, true, lose)) {
        EXPECT_EQ(error.code(), Errc::timed_out) << error.what();
        EXPECT_EQ(error.rank(), 2);
    }
}

TEST(AgreementSim, ends_when_the_node_is_closed_or_the_program_aborted) {
    const auto close = [](AgreeingCluster& all) {
        for (std::size_t i = 0; i < 3; ++i) {
            all.cluster.node(i).engine().close();
            all.cluster.node(i).settle();
        }
    };
    for (const Error& error : errors_without(1, true, close)) {
        EXPECT_EQ(error.code(), Errc::closed) << error.what();
    }
    const auto abort = [](AgreeingCluster& all) {
        for (std::size_t i = 0; i < 3; ++i) {
            all.cluster.node(i).engine().calls().set_world(all.cluster.context(i, 0));
        }
        EXPECT_TRUE(all.cluster.node(1).engine().abort(3, "enough"));
        all.cluster.node(1).settle();
    };
    for (const Error& error : errors_without(1, true, abort)) {
        EXPECT_EQ(error.code(), Errc::aborted) << error.what();
    }
}

}  // namespace
}  // namespace nexar::testing
