#pragma once

#include <string>

#include "calls.hpp"
#include "hostile_collective.hpp"

/// The fixture of calls.hpp in a cluster whose members are decided on: this node, a peer that fails
/// (the "hostile" one) and a peer that stays. kWorld has all of them, kStaying only those who stay.
namespace nexar::engine {

inline constexpr ContextId kStaying{21};
inline constexpr Rank kStays{1};  // the rank of the peer that stays in kStaying
inline constexpr Epoch kLossEpoch{5};

inline EngineOptions verdict_options(bool awaits = true) {
    EngineOptions options = call_options();
    options.awaits_verdicts = awaits;
    return options;
}

class VerdictsTest : public CallsTest {
protected:
    explicit VerdictsTest(const EngineOptions& options = verdict_options()) : CallsTest(options) {
        staying_ = &engine_->add_context(kStaying, std::array{node(0), node(2)}, kMe);
        honest_.arrive(Lane::eager, begins(kStaying, kStays, 2));
        engine_->advance(now_);
        pump();
    }

    Asked& send(Rank to, std::size_t bytes, bool synchronous = false) {
        return send_in(*world_, to, bytes, synchronous);
    }
    Asked& send_in(Context& context, Rank to, std::size_t bytes, bool synchronous = false) {
        Asked& asked = HostilePeer::send_in(context, to, bytes, synchronous);
        pump();
        return asked;
    }
    Asked& receive(Rank from, std::uint64_t tag, std::size_t bytes = 4096) {
        return receive_in(*world_, {.source = from, .tag = Tag(tag)}, bytes);
    }
    Asked& receive_in(Context& context, const Pattern& pattern, std::size_t bytes = 4096) {
        Asked& asked = asked_.emplace_back(bytes);
        asked.receive.owner = &asked;
        asked.receive.pattern = pattern;
        asked.receive.content = {&asked.region, 1};
        engine_->start(context, asked.receive);
        pump();
        return asked;
    }
    Asked& probe_in(Context& context, const Pattern& pattern) {
        Asked& asked = asked_.emplace_back(0);
        asked.probe.owner = &asked;
        asked.probe.pattern = pattern;
        engine_->start(context, asked.probe);
        pump();
        return asked;
    }
    Asked& barrier_in(Context& context, Duration timeout = 60s) {
        Asked& asked = asked_.emplace_back(0);
        prepare_barrier(context, asked, timeout);
        engine_->start(context, asked.collective);
        pump();
        return asked;
    }
    static void prepare_barrier(const Context& context, Asked& asked, Duration timeout = 60s) {
        asked.collective.owner = &asked;
        barrier_call(static_cast<std::uint32_t>(context.pairs.size()))(asked.collective);
        asked.collective.output = {asked.region};
        asked.collective.timeout = timeout;
    }

    /// A broadcast in the world from the peer that fails.
    Asked& call_broadcast(std::size_t bytes) {
        Asked& asked = asked_.emplace_back(bytes);
        asked.collective.owner = &asked;
        broadcast_call(bytes, kHostile, 3)(asked.collective);
        asked.collective.output = {asked.region};
        asked.collective.timeout = 60s;
        engine_->start(*world_, asked.collective);
        pump();
        return asked;
    }

    void evict_hostile(Epoch epoch = kLossEpoch) {
        engine_->evict(std::array{node(1)}, epoch);
        pump();
    }
    /// The link of the peer that fails breaks, without a goodbye.
    void break_hostile() {
        hostile_.go_down(Error(Errc::timed_out, "the peer is silent"));
        pump();
    }
    void pass_time(Duration time) {
        now_ += time;
        engine_->advance(now_);
        pump();
    }

    /// Expects that the world ended because the hostile peer was lost.
    static void expect_lost(const Asked& asked) {
        expect_ended_with(asked, Errc::membership_changed, "rank 1 was lost in epoch 5");
        EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    }
    static void expect_ended_with(const Asked& asked, Errc code, std::string_view text) {
        ASSERT_EQ(asked.ended, 1) << text;
        ASSERT_TRUE(asked.error()) << text;
        EXPECT_EQ(name(asked.error()->code()), name(code)) << asked.error()->what();
        EXPECT_THAT(asked.error()->cause(), ::testing::HasSubstr(text));
    }

    /// Expects that messages with the other peer work in the communicator without the lost one.
    void expect_staying_works() {
        Asked& asked = receive_in(*staying_, {.source = kStays, .tag = Tag(77)}, 100);
        honest_.arrive(Lane::eager, eager(header(staying_sequence_++, 77, 100, kStaying)));
        pump();
        ASSERT_EQ(asked.ended, 1);
        EXPECT_FALSE(asked.error()) << asked.error()->what();
        EXPECT_EQ(asked.memory, pattern(77, 100));
        const Asked& sent = send_in(*staying_, kStays, 16);
        pump();
        ASSERT_EQ(sent.ended, 1);
        EXPECT_FALSE(sent.error()) << sent.error()->what();
    }

    template <class Message>
    static std::vector<Message> control_of(const FakeLink& link) {
        return nexar::testing::frames_of<Message>(link.written(Lane::control));
    }

    Context* staying_ = nullptr;
    std::uint64_t staying_sequence_ = 0;
};

}  // namespace nexar::engine
