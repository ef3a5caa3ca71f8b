#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "engine/operation.hpp"
#include "support/engine_node.hpp"
#include "support/link_end.hpp"

namespace nexar::testing {

/// A message that was sent: what its receiver must find.
struct Sent {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t context = 0;
    std::uint64_t number = 0;  // among those of one sender to one receiver in one communicator
    std::uint64_t tag = 0;
    std::vector<std::byte> content{};
    port::ConstBytes region{};
    engine::SendOperation operation{};
    bool cancelled = false;
    bool ended = false;
    bool received = false;
};

/// A receive, or a probe that takes: both decide who gets a message.
struct Received {
    std::size_t at = 0;
    std::size_t context = 0;
    std::uint64_t order = 0;
    engine::Pattern pattern{};
    std::vector<std::byte> memory{};
    port::Bytes region{};
    engine::ReceiveOperation operation{};
    bool ended = false;
    bool cancelled = false;
    Sent* got = nullptr;
};

/// Random traffic between some engines, and MPI's rules about who gets what, checked when all is
/// over: from the order of sends and of receives alone, since that is what the rules speak of.
template <class Cluster>
class Traffic {
public:
    Traffic(std::uint64_t seed, std::size_t nodes) : random_(seed), cluster_(seed, nodes) {
        for (std::size_t i = 0; i < nodes; ++i) {
            cluster_.node(i).on_done = [this](engine::Operation& done) { on_done(done); };
        }
    }

    void run(int operations) {
        ASSERT_TRUE(cluster_.connect());
        for (int i = 0; i < operations; ++i) {
            step();
            if (random_.chance(0.2)) cluster_.world().run_for(Duration(random_.below(3'000'000)));
        }
        receive_the_rest();
        ASSERT_NO_FATAL_FAILURE(check());
        cluster_.close();
    }

    std::uint64_t trace() { return cluster_.world().trace_hash(); }
    std::size_t operations() const { return sends_.size() + receives_.size(); }

private:
    static constexpr std::size_t kContexts = 2;
    static constexpr std::uint64_t kTags = 5;
    static constexpr std::size_t kLargest = 80'000;

    void step() {
        const std::uint64_t choice = random_.below(100);
        if (choice < 45) {
            send();
        } else if (choice < 90) {
            receive(random_.below(cluster_.size()), random_.below(kContexts), random_pattern());
        } else if (choice < 95 && !receives_.empty()) {
            cancel_receive(*receives_[random_.below(receives_.size())]);
        } else if (!sends_.empty()) {
            cancel_send(*sends_[random_.below(sends_.size())]);
        }
    }

    std::size_t random_size() {
        switch (random_.below(10)) {
            case 0:
                return 0;
            case 1:
                return 16'384 + random_.below(2);
            case 2:
                return sizeof(std::uint64_t) + random_.below(kLargest - sizeof(std::uint64_t));
            case 3:
                return 65'536 + random_.below(2);
            default:
                return sizeof(std::uint64_t) + random_.below(random_.chance(0.5) ? 30 : 3'000);
        }
    }

    /// Begins with a number that tells which message it is, if there is any.
    std::vector<std::byte> new_content() {
        const std::uint64_t number = sends_.size() - 1;
        auto content = pattern(number, random_size());
        if (!content.empty()) std::memcpy(content.data(), &number, sizeof number);
        return content;
    }

    engine::Pattern random_pattern() {
        engine::Pattern pattern;
        if (random_.chance(0.7)) {
            pattern.source = Rank(static_cast<std::uint32_t>(random_.below(cluster_.size())));
        }
        if (random_.chance(0.7)) pattern.tag = Tag(random_.below(kTags));
        return pattern;
    }

    void send() {
        auto& sent = *sends_.emplace_back(std::make_unique<Sent>());
        sent.from = random_.below(cluster_.size());
        sent.to = random_.below(cluster_.size());
        sent.context = random_.below(kContexts);
        sent.number = numbers_[{sent.from, sent.to, sent.context}]++;
        sent.tag = random_.below(kTags);
        sent.content = new_content();
        sent.region = sent.content;
        sent.operation.owner = &sent;
        sent.operation.to = Rank(static_cast<std::uint32_t>(sent.to));
        sent.operation.tag = Tag(sent.tag);
        sent.operation.content = {&sent.region, 1};
        sent.operation.synchronous = random_.chance(0.1);
        sent.operation.priority = static_cast<port::Priority>(random_.below(port::kPriorities));
        EngineNode& node = cluster_.node(sent.from);
        node.engine().start(cluster_.context(sent.from, sent.context), sent.operation);
        node.settle();
    }

    Received& receive(std::size_t at, std::size_t context, const engine::Pattern& pattern) {
        auto& receive = *receives_.emplace_back(std::make_unique<Received>());
        receive.at = at;
        receive.context = context;
        receive.order = receives_.size();
        receive.pattern = pattern;
        receive.memory.resize(kLargest);
        receive.region = receive.memory;
        receive.operation.owner = &receive;
        receive.operation.pattern = pattern;
        receive.operation.content = {&receive.region, 1};
        EngineNode& node = cluster_.node(at);
        node.engine().start(cluster_.context(at, context), receive.operation);
        node.settle();
        return receive;
    }

    void cancel_receive(Received& receive) {
        EngineNode& node = cluster_.node(receive.at);
        node.engine().cancel(receive.operation);
        node.settle();
    }

    void cancel_send(Sent& sent) {
        EngineNode& node = cluster_.node(sent.from);
        node.engine().cancel(sent.operation);
        node.settle();
    }

    void on_done(engine::Operation& done) {
        if (done.kind() == engine::Operation::Kind::send) {
            auto& sent = *static_cast<Sent*>(done.owner);
            EXPECT_FALSE(std::exchange(sent.ended, true));
            sent.cancelled = done.error.has_value();
            if (done.error) {
                EXPECT_EQ(done.error->code(), Errc::cancelled) << done.error->what();
            }
            // The memory is ours again: whoever still reads it sees something else.
            if (sent.cancelled) std::ranges::fill(sent.content, std::byte{0xee});
            return;
        }
        auto& receive = *static_cast<Received*>(done.owner);
        EXPECT_FALSE(std::exchange(receive.ended, true));
        receive.cancelled = done.error.has_value();
        if (done.error) {
            EXPECT_EQ(done.error->code(), Errc::cancelled) << done.error->what();
            return;
        }
        identify(receive, done.envelope);
    }

    void identify(Received& receive, const engine::Envelope& envelope) {
        const auto content =
            std::span(receive.memory).first(static_cast<std::size_t>(envelope.bytes));
        if (content.empty()) {
            empty_[{envelope.source.value(), receive.at, receive.context, envelope.tag.value()}]
                .push_back(&receive);
            return;
        }
        std::uint64_t number = 0;
        std::memcpy(&number, content.data(), sizeof number);
        ASSERT_LT(number, sends_.size());
        Sent& sent = *sends_[number];
        ASSERT_TRUE(std::ranges::equal(sent.content, content)) << describe(sent);
        ASSERT_EQ(sent.from, envelope.source.value());
        ASSERT_EQ(sent.tag, envelope.tag.value());
        got(receive, sent);
    }

    static void got(Received& receive, Sent& sent) {
        ASSERT_FALSE(std::exchange(sent.received, true)) << "twice: " << describe(sent);
        receive.got = &sent;
        std::vector<std::byte>().swap(receive.memory);
    }

    /// Messages without content that agree in all else cannot be told apart: the first one sent is
    /// the one that the first receive got, as is the rule.
    void identify_empty() {
        for (auto& [flow, receives] : empty_) {
            std::ranges::sort(receives, {}, &Received::order);
            auto next = receives.begin();
            for (const auto& sent : sends_) {
                if (next == receives.end()) break;
                if (sent->cancelled || !sent->content.empty() ||
                    flow != std::array{sent->from, sent->to, sent->context, sent->tag}) {
                    continue;
                }
                got(**next++, *sent);
            }
            EXPECT_EQ(next, receives.end()) << "more messages without content than were sent";
        }
    }

    /// Receives until every message that was not cancelled has arrived.
    void receive_the_rest() {
        for (int rounds = 0; rounds < 100'000; ++rounds) {
            cluster_.world().run_for(std::chrono::milliseconds(20));
            bool any = false;
            for (std::size_t at = 0; at < cluster_.size(); ++at) {
                for (std::size_t context = 0; context < kContexts; ++context) {
                    engine::Engine& engine = cluster_.node(at).engine();
                    while (engine.look(cluster_.context(at, context), {})) {
                        receive(at, context, {});
                        any = true;
                    }
                }
            }
            const bool all = std::ranges::all_of(sends_, [](const auto& s) { return s->ended; });
            if (!any && all) break;
        }
        for (const auto& receive : receives_) {
            if (!receive->ended) cancel_receive(*receive);
        }
        cluster_.world().run_for(std::chrono::seconds(1));
    }

    bool fits(const Received& receive, const Sent& sent) const {
        return receive.at == sent.to && receive.context == sent.context &&
               receive.pattern.fits(Rank(static_cast<std::uint32_t>(sent.from)), Tag(sent.tag));
    }

    void check() {
        identify_empty();
        std::map<std::array<std::size_t, 3>, std::vector<const Received*>> flows;
        for (const auto& sent : sends_) {
            ASSERT_TRUE(sent->ended) << describe(*sent);
            ASSERT_TRUE(sent->received || sent->cancelled) << "was lost: " << describe(*sent);
        }
        for (const auto& receive : receives_) {
            ASSERT_TRUE(receive->ended);
            if (receive->got == nullptr) continue;
            ASSERT_TRUE(fits(*receive, *receive->got)) << describe(*receive->got);
            flows[{receive->got->from, receive->at, receive->context}].push_back(receive.get());
        }
        for (auto& [flow, receives] : flows) check_order(receives);
    }

    /// Of two messages of one sender that both fit a receive it gets the one sent first, unless an
    /// earlier receive got that.
    void check_order(std::vector<const Received*>& receives) {
        std::ranges::sort(receives, {}, [](const Received* r) { return r->got->number; });
        for (std::size_t later = 0; later < receives.size(); ++later) {
            const Received& second = *receives[later];
            for (std::size_t earlier = 0; earlier < later; ++earlier) {
                const Received& first = *receives[earlier];
                if (!fits(second, *first.got)) continue;
                ASSERT_LT(first.order, second.order)
                    << describe(*second.got) << " overtook " << describe(*first.got);
            }
        }
    }

    static std::string describe(const Sent& sent) {
        return fmt::format("message {} of {} bytes from {} to {} in {} with tag {}", sent.number,
                           sent.content.size(), sent.from, sent.to, sent.context, sent.tag);
    }

    Random random_;
    std::vector<std::unique_ptr<Sent>> sends_;
    std::vector<std::unique_ptr<Received>> receives_;
    std::map<std::array<std::size_t, 3>, std::uint64_t> numbers_;
    std::map<std::array<std::size_t, 4>, std::vector<Received*>> empty_;
    Cluster cluster_;
};

struct Runs {
    std::uint64_t first_seed = 1;
    std::uint64_t seeds = 1;
    int operations = 1;
};

/// Runs traffic between 2 to 7 nodes, until a seed fails.
template <class Cluster>
void expect_rules_kept(const Runs& runs) {
    for (std::uint64_t seed = runs.first_seed; seed < runs.first_seed + runs.seeds; ++seed) {
        SCOPED_TRACE(seed);
        Traffic<Cluster> traffic(seed, 2 + seed % 6);
        ASSERT_NO_FATAL_FAILURE(traffic.run(runs.operations));
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
}

}  // namespace nexar::testing
