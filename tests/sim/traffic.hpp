#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "rules.hpp"
#include "support/engine_node.hpp"
#include "support/link_end.hpp"

namespace nexar::testing {

/// Random traffic between engines, checked against the matching rules of MPI.
template <class Cluster>
class Traffic {
public:
    /// The default patience is so long that the matching rules alone determine the outcome of a
    /// cancel. With a shorter one operations may end before the peer has answered.
    Traffic(std::uint64_t seed, std::size_t nodes, Duration cancel_patience = kPatient)
        : impatient_(cancel_patience < kPatient),
          random_(seed),
          cluster_(seed, nodes, options(cancel_patience)) {
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

    Cluster& cluster() noexcept { return cluster_; }
    std::uint64_t trace() { return cluster_.world().trace_hash(); }
    std::size_t operations() const { return sends_.size() + receives_.size(); }
    /// Operations that ended before the peer answered.
    std::size_t lost() const { return lost_; }
    std::size_t unknown() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(sends_, [](const auto& sent) { return sent->unknown; }));
    }

private:
    static constexpr Duration kPatient = std::chrono::hours(1);
    static constexpr std::size_t kContexts = Cluster::kContexts;
    static constexpr std::uint64_t kTags = 5;
    static constexpr std::size_t kLargest = 80'000;

    static engine::EngineOptions options(Duration cancel_patience) {
        engine::EngineOptions made;
        made.cancel_patience = cancel_patience;
        return made;
    }

    void step() {
        const std::uint64_t choice = random_.below(100);
        if (choice < 45) {
            send();
        } else if (choice < 80) {
            receive(random_.below(cluster_.size()), random_.below(kContexts), random_pattern());
        } else if (choice < 90) {
            probe(choice, random_.below(cluster_.size()), random_.below(kContexts));
        } else if (choice < 92 && !taken_.empty()) {
            receive_taken(random_.below(taken_.size()));
        } else if (choice < 96 && !receives_.empty()) {
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

    /// Unless it is empty, the content begins with the number of its message.
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
        envelopes_.insert({sent.from, sent.to, sent.context, sent.tag, sent.content.size()});
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

    Received& receive(std::size_t at, std::size_t context, const engine::Pattern& pattern,
                      bool only_take = false) {
        auto& receive = *receives_.emplace_back(std::make_unique<Received>());
        receive.at = at;
        receive.context = context;
        receive.order = receives_.size();
        receive.pattern = pattern;
        receive.operation.owner = &receive;
        receive.operation.pattern = pattern;
        receive.operation.only_take = only_take;
        if (!only_take) show_memory(receive, receive.operation);
        EngineNode& node = cluster_.node(at);
        node.engine().start(cluster_.context(at, context), receive.operation);
        node.settle();
        return receive;
    }

    static void show_memory(Received& receive, engine::ReceiveOperation& operation) {
        receive.memory.resize(kLargest);
        receive.region = receive.memory;
        operation.content = {&receive.region, 1};
    }

    void probe(std::uint64_t how, std::size_t at, std::size_t context) {
        const engine::Pattern pattern = random_pattern();
        if (how % 3 == 0) {
            receive(at, context, pattern, true);
        } else if (how % 3 == 1) {
            auto& probe = *probes_.emplace_back(std::make_unique<Probed>());
            probe.at = at;
            probe.context = context;
            probe.operation.owner = &probe;
            probe.operation.pattern = pattern;
            EngineNode& node = cluster_.node(at);
            node.engine().start(cluster_.context(at, context), probe.operation);
            node.settle();
        } else if (const auto seen =
                       cluster_.node(at).engine().look(cluster_.context(at, context), pattern)) {
            // Nothing happens in between, so the receive must get the message that look() returned.
            const Received& next = receive(at, context, pattern);
            if (!next.ended || next.cancelled) return;
            EXPECT_EQ(next.operation.envelope.source, seen->source);
            EXPECT_EQ(next.operation.envelope.tag, seen->tag);
            EXPECT_EQ(next.operation.envelope.bytes, seen->bytes);
        }
    }

    void receive_taken(std::size_t index) {
        Received& receive = *std::exchange(taken_[index], taken_.back());
        taken_.pop_back();
        EngineNode& node = cluster_.node(receive.at);
        receive.rest.owner = &receive;
        show_memory(receive, receive.rest);
        node.engine().start(*receive.operation.message, receive.rest);
        node.settle();
    }

    void cancel_receive(Received& receive) {
        EngineNode& node = cluster_.node(receive.at);
        if (impatient_) node.engine().advance(cluster_.world().now());
        node.engine().cancel(receive.operation);
        if (impatient_) node.engine().cancel(receive.rest);
        node.settle();
    }

    void cancel_send(Sent& sent) {
        // Empty messages are indistinguishable, so the outcome of each must be known.
        if (impatient_ && sent.content.empty()) return;
        EngineNode& node = cluster_.node(sent.from);
        if (impatient_) node.engine().advance(cluster_.world().now());
        node.engine().cancel(sent.operation);
        node.settle();
    }

    void on_done(engine::Operation& done) {
        if (done.kind() == engine::Operation::Kind::send) {
            auto& sent = *static_cast<Sent*>(done.owner);
            EXPECT_FALSE(std::exchange(sent.ended, true));
            sent.cancelled = done.error.has_value();
            sent.unknown = impatient_ && done.error && done.error->code() == Errc::outcome_unknown;
            if (done.error && !sent.unknown) {
                EXPECT_EQ(done.error->code(), Errc::cancelled) << done.error->what();
            }
            // The memory belongs to the caller again: a late read finds wrong data.
            if (sent.cancelled) {
                if (impatient_) originals_[&sent] = sent.content;
                std::ranges::fill(sent.content, std::byte{0xee});
            }
            return;
        }
        if (done.kind() == engine::Operation::Kind::probe) {
            probed(*static_cast<Probed*>(done.owner));
            return;
        }
        auto& receive = *static_cast<Received*>(done.owner);
        if (&done == &receive.operation && receive.operation.message != nullptr) {
            taken_.push_back(&receive);
            return;
        }
        EXPECT_FALSE(std::exchange(receive.ended, true));
        receive.cancelled = done.error.has_value();
        if (done.error) {
            EXPECT_EQ(done.error->code(), Errc::cancelled) << done.error->what();
            if (impatient_) note_lost(receive, *done.error);
            return;
        }
        identify(receive, done.envelope);
    }

    /// Marks the message that was lost with a cancelled receive, if any. Overwrites the memory so
    /// that check() detects late writes.
    void note_lost(Received& receive, const Error& error) {
        std::ranges::fill(receive.memory, std::byte{0xdd});
        if (!error.sequence()) return;
        for (const auto& sent : sends_) {
            if (static_cast<int>(sent->from) == error.rank() && sent->to == receive.at &&
                sent->context == receive.context && sent->operation.sequence == *error.sequence()) {
                sent->lost = true;
                ++lost_;
            }
        }
    }

    /// Expects that the message that the probe found was sent.
    void probed(Probed& probe) {
        EXPECT_FALSE(std::exchange(probe.ended, true));
        const engine::ProbeOperation& operation = probe.operation;
        if (operation.error) {
            EXPECT_EQ(operation.error->code(), Errc::cancelled) << operation.error->what();
            return;
        }
        const engine::Envelope& seen = operation.envelope;
        EXPECT_TRUE(operation.pattern.fits(seen.source, seen.tag));
        EXPECT_TRUE(envelopes_.contains({seen.source.value(), probe.at, probe.context,
                                         seen.tag.value(), static_cast<std::size_t>(seen.bytes)}));
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
        const auto original = originals_.find(&sent);
        ASSERT_TRUE(std::ranges::equal(
            original == originals_.end() ? sent.content : original->second, content))
            << describe(sent);
        ASSERT_EQ(sent.from, envelope.source.value());
        ASSERT_EQ(sent.tag, envelope.tag.value());
        got(receive, sent);
    }

    static void got(Received& receive, Sent& sent) {
        ASSERT_FALSE(std::exchange(sent.received, true)) << "received twice: " << describe(sent);
        receive.got = &sent;
        std::vector<std::byte>().swap(receive.memory);
    }

    /// Empty messages with equal envelopes are indistinguishable. By the matching rules the first
    /// receive got the one that was sent first.
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
            EXPECT_EQ(next, receives.end()) << "more empty messages were received than sent";
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
            while (!taken_.empty()) {
                receive_taken(0);
                any = true;
            }
            const bool all = std::ranges::all_of(sends_, [](const auto& s) { return s->ended; });
            if (!any && all) break;
        }
        for (const auto& receive : receives_) {
            if (receive->ended) continue;
            receive->left_over = true;
            cancel_receive(*receive);
        }
        for (const auto& probe : probes_) {
            if (probe->ended) continue;
            EngineNode& node = cluster_.node(probe->at);
            node.engine().cancel(probe->operation);
            node.settle();
        }
        cluster_.world().run_for(std::chrono::seconds(1));
    }

    void check() {
        identify_empty();
        for (const auto& probe : probes_) ASSERT_TRUE(probe->ended);
        for (const auto& receive : receives_) {
            if (!impatient_ || !receive->cancelled) continue;
            ASSERT_TRUE(std::ranges::all_of(receive->memory,
                                            [](std::byte b) { return b == std::byte{0xdd}; }));
        }
        expect_mpi_rules(sends_, receives_);
    }

    bool impatient_;
    Random random_;
    std::map<const Sent*, std::vector<std::byte>> originals_;  // content of cancelled sends
    std::size_t lost_ = 0;
    std::vector<std::unique_ptr<Sent>> sends_;
    std::vector<std::unique_ptr<Received>> receives_;
    std::vector<std::unique_ptr<Probed>> probes_;
    std::vector<Received*> taken_;
    std::map<std::array<std::size_t, 3>, std::uint64_t> numbers_;
    std::map<std::array<std::size_t, 4>, std::vector<Received*>> empty_;
    std::set<std::array<std::size_t, 5>> envelopes_;  // of all sent messages
    Cluster cluster_;
};

struct Runs {
    std::uint64_t first_seed = 1;
    std::uint64_t seeds = 1;
    int operations = 1;
};

/// Runs traffic between 2 to 7 nodes for all seeds until one fails, and prints its progress every
/// 50 seeds.
template <class Cluster>
void expect_mpi_rules_in_runs(const Runs& runs) {
    for (std::uint64_t seed = runs.first_seed; seed < runs.first_seed + runs.seeds; ++seed) {
        SCOPED_TRACE(seed);
        Traffic<Cluster> traffic(seed, 2 + seed % 6);
        ASSERT_NO_FATAL_FAILURE(traffic.run(runs.operations));
        ASSERT_FALSE(::testing::Test::HasFailure());
        if (seed % 50 == 0) std::cout << "seeds up to " << seed << " are clean\n" << std::flush;
    }
}

}  // namespace nexar::testing
