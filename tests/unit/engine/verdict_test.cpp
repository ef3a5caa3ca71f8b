// Peers whose links break while others decide on the members, and hints about them.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

using membership::Hint;

class VerdictTest : public VerdictsTest {
protected:
    /// The next hint, apart from those that say that the fixture connected the peers.
    std::optional<PeerHint> next_hint() {
        auto hint = engine_->poll_hint();
        while (hint && hint->hint == Hint::connected) hint = engine_->poll_hint();
        return hint;
    }
    std::optional<Hint> hint_about(const NodeId& node) {
        const auto hint = next_hint();
        if (!hint) return std::nullopt;
        EXPECT_EQ(hint->node, node);
        return hint->hint;
    }
};

TEST_F(VerdictTest, operations_with_a_peer_whose_link_broke_stay_pending) {
    const Asked& announced = send(kHostile, 100, true);
    const Asked& streaming = send(kHostile, 3000);
    const Asked& any = receive_in(*world_, {});
    const Asked& collective = barrier_in(*world_);
    const Called& sent = call(kHostile, 10);
    break_hostile();
    const Asked& later = send(kHostile, 10);
    const Asked& later_receive = receive(kHostile, 5);
    const Called& later_call = call(kHostile, 10);
    const Asked& later_collective = barrier_in(*world_);
    pass_time(1s);
    EXPECT_TRUE(hostile_.outgoing().empty());
    for (const Asked* asked : {&std::as_const(*waiting_), &announced, &streaming, &any, &collective,
                               &later, &later_receive, &later_collective}) {
        EXPECT_EQ(asked->ended, 0);
    }
    EXPECT_EQ(sent.ended, 0);
    EXPECT_EQ(later_call.ended, 0);
    expect_staying_works();
    evict_hostile();
    for (const Asked* asked : {&std::as_const(*waiting_), &announced, &streaming, &any, &collective,
                               &later, &later_receive, &later_collective}) {
        expect_lost(*asked);
    }
    expect_failed(sent, Errc::membership_changed);
    expect_failed(later_call, Errc::membership_changed);
}

TEST_F(VerdictTest, operations_of_an_undecided_peer_can_be_cancelled) {
    Asked& waiting_send = send(kHostile, 10);
    Asked& announced = send(kHostile, 3000, true);
    Asked& eager_one = send(kHostile, 100, true);
    Asked& streaming = send(kHostile, 3000);
    Asked& arriving = receive(kHostile, 5);
    says(Lane::eager, bulk(header(0, 5, 3000)));
    const port::StreamId stream = streams(stream_of(kWorld, 0) + pattern(1, 1000));
    static_cast<void>(stream);
    Asked& collective = barrier_in(*world_);
    Called& called = call(kHostile, 10);
    EXPECT_EQ(waiting_send.ended, 1);
    break_hostile();
    Asked& later = send(kHostile, 10);
    Asked& probe = probe_in(*world_, {.source = kHostile, .tag = {}});
    engine_->cancel(announced.send);
    engine_->cancel(eager_one.send);
    engine_->cancel(streaming.send);
    engine_->cancel(arriving.receive);
    engine_->cancel(waiting_->receive);
    engine_->cancel(later.send);
    engine_->cancel(probe.probe);
    engine_->cancel(collective.collective);
    engine_->cancel(called.call);
    pass_time(1s);
    for (const Asked* asked : {&announced, &arriving, waiting_, &later, &probe, &collective}) {
        expect_ended_with(*asked, Errc::cancelled, "");
    }
    for (const Asked* asked : {&eager_one, &streaming}) {
        expect_ended_with(*asked, Errc::outcome_unknown, "");
    }
    expect_failed(called, Errc::cancelled);
}

TEST_F(VerdictTest, send_that_was_cancelled_when_the_link_broke_ends_in_time) {
    Asked& streaming = send(kHostile, 3000);
    engine_->cancel(streaming.send);
    break_hostile();
    pass_time(1s);
    ASSERT_EQ(streaming.ended, 1);
}

TEST_F(VerdictTest, deadlines_of_an_undecided_peer_work) {
    const Asked& collective = barrier_in(*world_, 2s);
    const Called& called = call(kHostile, 10, 2s);
    break_hostile();
    const Asked& later = barrier_in(*world_, 1s);
    pass_time(1s);
    expect_ended_with(later, Errc::timed_out, "");
    EXPECT_EQ(collective.ended, 0);
    pass_time(1s);
    expect_ended_with(collective, Errc::timed_out, "");
    expect_failed(called, Errc::timed_out);
}

TEST_F(VerdictTest, collective_that_had_failed_ends_with_the_link) {
    Asked& asked = call_broadcast(3000);
    says(Lane::eager, said(wire::CollectiveHeader{.context = kWorld,
                                                  .operation = 0,
                                                  .size = 3000,
                                                  .fingerprint = asked.collective.terms.fingerprint,
                                                  .place = PayloadPlace::stream}));
    const port::StreamId stream = hostile_.open();
    pump();
    hostile_.arrive(
        stream, said(wire::Preamble{
                    .lane = wire::Lane::collective, .context = kWorld, .sequence = Sequence(0)}) +
                    pattern(1, 1000));
    pump();
    engine_->cancel(asked.collective);
    break_hostile();
    expect_ended_with(asked, Errc::cancelled, "");
}

TEST_F(VerdictTest, receive_that_had_failed_ends_with_the_link) {
    Asked& into = receive(kHostile, 5);
    says(Lane::eager, bulk(header(0, 5, 3000)));
    const port::StreamId stream = streams(stream_of(kWorld, 0) + pattern(1, 1000));
    static_cast<void>(stream);
    hostile_.arrive(Lane::control, said(wire::Withdraw{.context = kWorld,
                                                       .sequence = Sequence(0),
                                                       .step = wire::WithdrawStep::asked}));
    break_hostile();
    expect_ended_with(into, Errc::cancelled, "the sender cancelled the message");
}

TEST_F(VerdictTest, undecided_peer_cannot_connect_again_before_the_verdict) {
    break_hostile();
    FakeLink again(port::LinkId(31), {.cluster = {}, .node = node(1), .incarnation = {}});
    again.come_up();
    engine_->handle(*again.poll_event());
    EXPECT_TRUE(again.closed());
    std::unique_ptr<LaneReader> none;
    EXPECT_FALSE(engine_->take_over(again, none, 0));
}

TEST_F(VerdictTest, frames_to_an_undecided_peer_do_not_pile_up) {
    break_hostile();
    for (int i = 0; i < 1000; ++i) {
        Asked& asked = barrier_in(*world_);
        engine_->cancel(asked.collective);
        pump();
        EXPECT_EQ(asked.ended, 1);
    }
    const Pair& pair = *world_->pairs[kHostile.value()];
    EXPECT_TRUE(pair.collectives == nullptr || pair.collectives->said.empty());
}

TEST_F(VerdictTest, giving_up_ends_the_operations_of_an_undecided_peer) {
    const Asked& streaming = send(kHostile, 3000);
    break_hostile();
    engine_->give_up(node(1), Error(Errc::link_closed, "nobody decides"));
    pump();
    expect_ended_with(streaming, Errc::link_closed, "nobody decides");
    expect_ended_with(*waiting_, Errc::link_closed, "nobody decides");
    expect_other_peer_unaffected();
}

TEST_F(VerdictTest, closing_ends_the_operations_of_an_undecided_peer) {
    const Asked& streaming = send(kHostile, 3000);
    break_hostile();
    engine_->close();
    pump();
    expect_ended_with(streaming, Errc::closed, "");
    expect_ended_with(*waiting_, Errc::closed, "");
}

TEST_F(VerdictTest, abort_does_not_wait_for_an_undecided_peer) {
    const Asked& streaming = send(kHostile, 3000);
    break_hostile();
    engine_->calls().set_own_rank(kMe);
    EXPECT_TRUE(engine_->abort(3, "enough"));
    pump();
    expect_ended_with(streaming, Errc::aborted, "enough");
    EXPECT_TRUE(engine_->abort_told());
}

TEST_F(VerdictTest, peer_that_says_goodbye_has_left) {
    const Asked& announced = send(kHostile, 3000, true);
    const Asked& any = receive_in(*world_, {.source = {}, .tag = Tag(4)});
    says(Lane::control, said(goodbye()));
    hostile_.go_down(Error(Errc::link_closed, "the peer closed the link"));
    pump();
    EXPECT_EQ(hint_about(node(1)), Hint::left);
    EXPECT_FALSE(next_hint());
    expect_ended_with(*waiting_, Errc::link_closed, "");
    expect_ended_with(announced, Errc::link_closed, "");
    EXPECT_EQ(any.ended, 0);
    expect_other_peer_unaffected();
    EXPECT_FALSE(engine_->casualty());
}

TEST_F(VerdictTest, peer_that_says_why_it_leaves_has_left) {
    says(Lane::control,
         said(wire::report_of(Error(Errc::function_failed, "the disk is full"), {})));
    hostile_.go_down(Error(Errc::link_closed, "the peer closed the link"));
    pump();
    EXPECT_EQ(hint_about(node(1)), Hint::left);
    expect_ended_with(*waiting_, Errc::link_closed, "the disk is full");
}

TEST_F(VerdictTest, closing_says_goodbye) {
    engine_->set_view({.epoch = Epoch(1)});
    engine_->close();
    const auto reports = control_of<wire::ErrorReport>(honest_);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0], goodbye());
    EXPECT_FALSE(next_hint());
}

TEST_F(VerdictTest, first_link_of_a_peer_is_a_hint) {
    for (const std::uint8_t peer : {std::uint8_t{1}, std::uint8_t{2}}) {
        const auto hint = engine_->poll_hint();
        ASSERT_TRUE(hint);
        EXPECT_EQ(hint->node, node(peer));
        EXPECT_EQ(hint->hint, Hint::connected);
    }
    EXPECT_FALSE(engine_->poll_hint());
}

TEST_F(VerdictTest, refused_packet_is_a_hint_and_the_link_stays_up) {
    for (int i = 0; i < 1000; ++i) {
        engine_->handle({.link = hostile_.id(), .what = port::PeerRefused{}});
    }
    EXPECT_EQ(hint_about(node(1)), Hint::doubtful);
    EXPECT_FALSE(next_hint());
    expect_not_disconnected();
}

TEST_F(VerdictTest, hints_tell_broken_links_from_dead_processes) {
    break_hostile();
    EXPECT_EQ(hint_about(node(1)), Hint::doubtful);
    EXPECT_FALSE(next_hint());
    engine_->handle({.link = honest_.id(),
                     .what = port::Down{.reason = Error(Errc::link_closed, "its process ended"),
                                        .peer_gone = true}});
    pump();
    EXPECT_EQ(hint_about(node(2)), Hint::gone);
    EXPECT_FALSE(next_hint());
}

TEST_F(VerdictTest, peer_that_violates_the_protocol_is_disconnected_at_once) {
    says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(9)}));
    expect_disconnected(Errc::protocol_violation, "never announced");
}

}  // namespace
}  // namespace nexar::engine
