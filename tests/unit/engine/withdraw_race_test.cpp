#include "hostile.hpp"

/// Races with a peer that follows the protocol: it withdraws a message while this side receives or
/// drops it.
namespace nexar::engine {
namespace {

/// A context that this side makes later or not at all.
constexpr ContextId kEarly{70};

class WithdrawRace : public HostilePeer {
protected:
    void withdraws(std::uint64_t sequence, ContextId context = kWorld) {
        hostile_.arrive(Lane::control, said(wire::Withdraw{.context = context,
                                                           .sequence = Sequence(sequence),
                                                           .step = wire::WithdrawStep::asked}));
    }

    /// A complete message arrives on a stream; the engine has not yet handled the link's Finished
    /// event.
    port::StreamId arrives(std::uint64_t sequence, ContextId context = kWorld) {
        says(Lane::eager, bulk(header(sequence, 1, 300, context)));
        const port::StreamId stream = streams(stream_of(context, sequence) + pattern(1, 300));
        hostile_.finish(stream);
        return stream;
    }

    /// Runs `round` more often than the credit allows, so that a round that leaks credit fails.
    template <class Round>
    void repeat_beyond_credit(Round&& round) {
        for (std::uint64_t i = 0; i < 3 * small_options().shared.headers; ++i) {
            round(i);
            pump();
            ASSERT_FALSE(hostile_.closed()) << *hostile_.closed();
            ASSERT_EQ(engine_->messages(), 0U);
            ASSERT_EQ(control_frames<wire::Withdraw>().size(), i + 1);
            EXPECT_EQ(control_frames<wire::Withdraw>().back().step, wire::WithdrawStep::done);
        }
    }
};

TEST_F(WithdrawRace, credit_returns_when_a_message_is_withdrawn_as_its_last_byte_arrives) {
    repeat_beyond_credit([&](std::uint64_t i) {
        arrives(i);
        withdraws(i);
    });
}

TEST_F(WithdrawRace, credit_returns_for_a_withdrawn_message_of_a_communicator_not_made_yet) {
    says(Lane::eager, begins(kEarly, kHostile, 2));
    repeat_beyond_credit([&](std::uint64_t i) {
        arrives(i, kEarly);
        withdraws(i, kEarly);
    });
    const std::array<NodeId, 2> members{node(0), node(1)};
    EXPECT_FALSE(engine_->look(engine_->add_context(kEarly, members, kMe), {}));
}

TEST_F(WithdrawRace, credit_returns_when_stream_and_withdrawal_overtake_the_header) {
    repeat_beyond_credit([&](std::uint64_t i) {
        streams(stream_of(kWorld, i) + pattern(1, 50));
        withdraws(i);
        says(Lane::eager, bulk(header(i, 1, 300)));
    });
    EXPECT_EQ(hostile_.incoming(), 0U);
}

TEST_F(WithdrawRace, credit_returns_for_a_withdrawn_message_whose_stream_was_reset) {
    repeat_beyond_credit([&](std::uint64_t i) {
        says(Lane::eager, bulk(header(i, 1, 300)));
        hostile_.reset(streams(stream_of(kWorld, i) + pattern(1, 50)));
        pump();
        withdraws(i);
    });
}

TEST_F(WithdrawRace, a_taken_message_stays_until_it_is_received) {
    says(Lane::eager, bulk(header(0, 1, 300)));
    const port::StreamId stream = streams(stream_of(kWorld, 0) + pattern(1, 300));
    InMessage* taken = engine_->take(*world_, {.source = kHostile, .tag = Tag(1)});
    ASSERT_NE(taken, nullptr);
    hostile_.finish(stream);
    withdraws(0);
    pump();
    ASSERT_EQ(engine_->messages(), 1U) << "the caller of take() holds a pointer to it";
    Asked& asked = asked_.emplace_back(300);
    asked.receive.owner = &asked;
    asked.receive.content = {&asked.region, 1};
    engine_->start(*taken, asked.receive);
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::cancelled);
    EXPECT_EQ(engine_->messages(), 0U);
}

TEST_F(WithdrawRace, a_receive_can_match_a_message_whose_stream_is_being_refused) {
    says(Lane::eager, bulk(header(0, 1, 300)));
    streams(stream_of(kWorld, 0) + pattern(1, 50));
    withdraws(0);  // refuses the stream; the link has not reported Aborted yet
    Asked& asked = receive(kHostile, 1, 300);
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::cancelled);
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
}

TEST_F(WithdrawRace, a_message_can_be_dropped_while_its_stream_is_being_refused) {
    says(Lane::eager, bulk(header(0, 1, 300)));
    streams(stream_of(kWorld, 0) + pattern(1, 50));
    InMessage* taken = engine_->take(*world_, {.source = kHostile, .tag = Tag(1)});
    ASSERT_NE(taken, nullptr);
    withdraws(0);
    engine_->drop(*taken);
    pump();
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
}

TEST_F(WithdrawRace, a_taken_message_can_be_dropped_after_its_peer_was_disconnected) {
    says(Lane::eager, bulk(header(0, 1, 300)));
    streams(stream_of(kWorld, 0) + pattern(1, 50));
    InMessage* taken = engine_->take(*world_, {.source = kHostile, .tag = Tag(1)});
    ASSERT_NE(taken, nullptr);
    withdraws(0);
    says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(9)}));
    EXPECT_EQ(hostile_.incoming(), 0U);
    engine_->drop(*taken);
    EXPECT_EQ(engine_->messages(), 0U);
    expect_disconnected(Errc::protocol_violation, "never announced");
}

TEST_F(WithdrawRace, pending_sends_to_this_rank_fail_when_the_engine_closes) {
    Asked& sent = send(kMe, 100, true);
    Asked& taken = send(kMe, 50'000);
    InMessage* message = engine_->take(*world_, {.source = kMe, .tag = Tag(1)});
    ASSERT_NE(message, nullptr);
    engine_->close();
    pump();
    for (const Asked* asked : {&sent, &taken}) {
        ASSERT_EQ(asked->ended, 1);
        EXPECT_EQ(asked->error()->code(), Errc::closed);
    }
    engine_->drop(*message);
}

}  // namespace
}  // namespace nexar::engine
