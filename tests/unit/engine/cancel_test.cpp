#include "hostile.hpp"

/// Cancelled operations end within a bounded time whatever the peer does, and the engine does not
/// touch their memory afterwards.
namespace nexar::engine {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBegin{1000s};
const Duration patience = EngineOptions{}.cancel_patience;

class Cancel : public HostilePeer {
protected:
    Cancel() { engine_->advance(kBegin); }

    void cancel(SendOperation& send) {
        engine_->cancel(send);
        pump();
    }
    void cancel(ReceiveOperation& receive) {
        engine_->cancel(receive);
        pump();
    }
    void pass(Duration since_begin) {
        engine_->advance(kBegin + since_begin);
        pump();
    }

    void answers(std::uint64_t sequence, wire::WithdrawStep step) {
        says(Lane::control,
             said(wire::Withdraw{.context = kWorld, .sequence = Sequence(sequence), .step = step}));
    }
    void grants(std::uint64_t sequence) {
        says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(sequence)}));
    }

    static void expect_ended(const Asked& asked, Errc code) {
        ASSERT_EQ(asked.ended, 1);
        ASSERT_TRUE(asked.error());
        EXPECT_EQ(asked.error()->code(), code) << asked.error()->what();
        EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    }

    /// The memory belongs to the caller again, so its content must not change from now on.
    static void claim(Asked& asked) { std::ranges::fill(asked.memory, std::byte{0xee}); }
    static void expect_untouched(const Asked& asked) {
        EXPECT_EQ(asked.memory, Bytes(asked.memory.size(), std::byte{0xee}));
    }
};

TEST_F(Cancel, send_without_grant_ends_at_once) {
    Asked& sent = send(kHostile, 2000, true);
    cancel(sent.send);
    expect_ended(sent, Errc::cancelled);
    ASSERT_EQ(control_frames<wire::Withdraw>().size(), 1U);
    EXPECT_EQ(control_frames<wire::Withdraw>()[0].step, wire::WithdrawStep::asked);
    grants(0);
    EXPECT_TRUE(hostile_.outgoing().empty());
    answers(0, wire::WithdrawStep::done);
    expect_not_disconnected();
}

TEST_F(Cancel, partly_sent_send_ends_at_once) {
    Asked& sent = send(kHostile, 2000);
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    cancel(sent.send);
    expect_ended(sent, Errc::cancelled);
    EXPECT_EQ(engine_->next_deadline(), std::nullopt);
    EXPECT_EQ(control_frames<wire::Withdraw>().size(), 1U) << "the peer must drop the message";
    answers(0, wire::WithdrawStep::done);
    expect_not_disconnected();
}

TEST_F(Cancel, fully_sent_send_ends_when_the_answer_is_late) {
    hostile_.sent_whole = true;
    Asked& sent = send(kHostile, 2000);
    cancel(sent.send);
    EXPECT_EQ(sent.ended, 0) << "the peer may still answer";
    EXPECT_EQ(engine_->next_deadline(), kBegin + patience);
    pass(patience - 1ns);
    EXPECT_EQ(sent.ended, 0);
    pass(patience);
    expect_ended(sent, Errc::outcome_unknown);
    EXPECT_EQ(engine_->next_deadline(), std::nullopt);
    answers(0, wire::WithdrawStep::received);
    expect_not_disconnected();
    answers(0, wire::WithdrawStep::received);
    expect_disconnected(Errc::protocol_violation,
                        "reported the outcome of a message without being asked");
}

TEST_F(Cancel, fully_sent_send_ends_with_the_outcome_that_the_peer_reports) {
    hostile_.sent_whole = true;
    Asked& kept = send(kHostile, 2000);
    Asked& lost = send(kHostile, 2000);
    cancel(kept.send);
    cancel(lost.send);
    answers(0, wire::WithdrawStep::received);
    answers(1, wire::WithdrawStep::done);
    ASSERT_EQ(kept.ended, 1);
    EXPECT_FALSE(kept.error());
    expect_ended(lost, Errc::cancelled);
    EXPECT_EQ(engine_->next_deadline(), std::nullopt);
}

TEST_F(Cancel, small_synchronous_send_waits_briefly_for_its_match) {
    Asked& matched = send(kHostile, 200, true);
    Asked& unmatched = send(kHostile, 200, true);
    cancel(matched.send);
    cancel(unmatched.send);
    pass(patience / 2);
    grants(0);
    ASSERT_EQ(matched.ended, 1);
    EXPECT_FALSE(matched.error());
    EXPECT_EQ(unmatched.ended, 0);
    pass(patience);
    expect_ended(unmatched, Errc::outcome_unknown);
    grants(1);
    expect_not_disconnected();
}

TEST_F(Cancel, second_cancel_of_a_send_has_no_effect) {
    hostile_.sent_whole = true;
    Asked& sent = send(kHostile, 2000);
    cancel(sent.send);
    pass(patience / 2);
    cancel(sent.send);
    EXPECT_EQ(control_frames<wire::Withdraw>().size(), 1U);
    pass(patience);
    expect_ended(sent, Errc::outcome_unknown);
}

TEST_F(Cancel, matched_receive_waits_briefly_for_the_rest) {
    says(Lane::eager, bulk(header(0, 1, 3000)));
    const port::StreamId stream = streams(stream_of(kWorld, 0) + pattern(1, 700));
    Asked& asked = receive(kHostile, 1, 3000);
    cancel(asked.receive);
    EXPECT_EQ(asked.ended, 0);
    const Bytes all = pattern(1, 3000);
    hostile_.arrive(stream, std::span(all).subspan(700));
    hostile_.finish(stream);
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_FALSE(asked.error());
    EXPECT_EQ(engine_->next_deadline(), std::nullopt);
}

TEST_F(Cancel, matched_receive_ends_when_the_rest_is_late) {
    for (const bool direct : {false, true}) {
        SCOPED_TRACE(direct);
        hostile_.direct = direct;
        const std::uint64_t sequence = direct ? 1 : 0;
        says(Lane::eager, bulk(header(sequence, 1, 3000)));
        const port::StreamId stream = streams(stream_of(kWorld, sequence) + pattern(1, 700));
        Asked& asked = receive(kHostile, 1, 3000);
        engine_->advance(kBegin);
        cancel(asked.receive);
        engine_->advance(engine_->next_deadline().value());
        while (Operation* done = engine_->poll_done()) {
            EXPECT_EQ(done->owner, &asked);
            ++asked.ended;
            asked.last = done;
        }
        expect_ended(asked, Errc::cancelled);
        claim(asked);
        // These bytes arrive before the link learns that the stream is refused.
        hostile_.arrive(stream, pattern(2, 2000));
        pump();
        expect_untouched(asked);
        EXPECT_EQ(hostile_.incoming(), 0U);
        EXPECT_EQ(engine_->messages(), 0U);
        expect_not_disconnected();
    }
}

TEST_F(Cancel, matched_receive_refuses_a_later_stream) {
    says(Lane::eager, bulk(header(0, 1, 3000)));
    Asked& asked = receive(kHostile, 1, 3000);
    cancel(asked.receive);
    pass(patience);
    expect_ended(asked, Errc::cancelled);
    claim(asked);
    streams(stream_of(kWorld, 0) + pattern(1, 700));
    expect_untouched(asked);
    EXPECT_EQ(hostile_.incoming(), 0U);
    EXPECT_EQ(engine_->messages(), 0U);
    expect_not_disconnected();
}

TEST_F(Cancel, receive_of_a_partial_eager_message_ends_and_the_lane_stays_usable) {
    for (const bool early : {false, true}) {
        SCOPED_TRACE(early);
        const std::uint64_t sequence = early ? 1 : 0;
        const Bytes message = eager(header(sequence, 1, 200));
        const std::size_t cut = message.size() - 150;
        if (early) says(Lane::eager, std::span(message).first(cut));
        Asked& asked = receive(kHostile, 1, 200);
        if (!early) says(Lane::eager, std::span(message).first(cut));
        engine_->advance(kBegin);
        cancel(asked.receive);
        EXPECT_EQ(asked.ended, 0);
        pass(early ? 2 * patience : patience);
        expect_ended(asked, Errc::cancelled);
        claim(asked);
        says(Lane::eager, std::span(message).subspan(cut));
        expect_untouched(asked);
        EXPECT_EQ(engine_->messages(), 0U);
    }
    Asked& next = receive(kHostile, 7, 100);
    says(Lane::eager, eager(header(2, 7, 100)));
    ASSERT_EQ(next.ended, 1);
    EXPECT_EQ(next.memory, pattern(7, 100));
    expect_not_disconnected();
}

TEST_F(Cancel, operations_end_once_when_the_link_goes_down_meanwhile) {
    hostile_.sent_whole = true;
    says(Lane::eager, bulk(header(0, 1, 3000)));
    Asked& received = receive(kHostile, 1, 3000);
    Asked& sent = send(kHostile, 2000);
    Asked& small = send(kHostile, 200, true);
    cancel(received.receive);
    cancel(sent.send);
    cancel(small.send);
    hostile_.go_down(Error(Errc::timed_out, "it is gone"));
    pump();
    for (const Asked* asked : {&received, &sent, &small}) expect_ended(*asked, Errc::timed_out);
    EXPECT_EQ(engine_->next_deadline(), std::nullopt);
    pass(2 * patience);
}

TEST_F(Cancel, peer_that_never_answers_withdrawals_is_disconnected) {
    const std::size_t most = small_options().max_control_backlog;
    for (std::uint64_t i = 0; i <= most; ++i) {
        ASSERT_FALSE(hostile_.closed()) << i;
        Asked& sent = send(kHostile, 2000, true);
        cancel(sent.send);
        expect_ended(sent, Errc::cancelled);
        // The peer returns credit but never answers the withdrawal.
        says(Lane::control, said(wire::Credit{.pool = wire::CreditPool::shared, .headers = 1}));
    }
    expect_disconnected(Errc::limit_exceeded, "does not report the outcome of messages");
}

}  // namespace
}  // namespace nexar::engine
