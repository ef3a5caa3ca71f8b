// Nodes that the members agree to be gone: what ends with them, and what goes on.

#include <memory>

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

class EvictTest : public VerdictsTest {};

TEST_F(EvictTest, pending_operations_of_exactly_its_communicators_end) {
    const Asked& any = receive_in(*world_, {.source = {}, .tag = Tag(5)});
    const Asked& other = receive_in(*world_, {.source = kHonest, .tag = Tag(5)});
    const Asked& probe = probe_in(*world_, {.source = kHonest, .tag = Tag(6)});
    const Asked& announced = send(kHostile, 3000, true);
    const Asked& matched_late = send(kHonest, 100, true);
    const Asked& collective = barrier_in(*world_);
    const Asked& local = send(kMe, 100, true);
    const Asked& unrelated = receive_in(*staying_, {.source = kStays, .tag = Tag(5)});
    const Asked& unrelated_any = receive_in(*staying_, {.source = {}, .tag = Tag(6)});
    const Asked& unrelated_send = send_in(*staying_, kStays, 100, true);
    const Asked& unrelated_collective = barrier_in(*staying_);
    evict_hostile();
    expect_lost(*waiting_);
    for (const Asked* asked :
         {&any, &other, &probe, &announced, &matched_late, &collective, &local}) {
        expect_lost(*asked);
    }
    for (const Asked* asked :
         {&unrelated, &unrelated_any, &unrelated_send, &unrelated_collective}) {
        EXPECT_EQ(asked->ended, 0);
    }
    EXPECT_FALSE(honest_.closed());
    expect_staying_works();
}

TEST_F(EvictTest, streaming_send_ends_when_the_link_has_let_go_of_its_memory) {
    const Asked& to_lost = send(kHostile, 3000);
    const Asked& to_other = send(kHonest, 3000);
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    ASSERT_EQ(honest_.outgoing().size(), 1U);
    engine_->evict(std::array{node(1)}, kLossEpoch);
    EXPECT_TRUE(to_lost.send.active);
    EXPECT_TRUE(to_other.send.active);
    pump();
    EXPECT_TRUE(hostile_.outgoing().empty());
    EXPECT_TRUE(honest_.outgoing().empty());
    expect_lost(to_lost);
    expect_lost(to_other);
}

TEST_F(EvictTest, receive_whose_message_is_arriving_ends_and_its_memory_stays_untouched) {
    Asked& into = receive(kHonest, 5);
    honest_.arrive(Lane::eager, bulk(header(honest_sequence_, 5, 3000)));
    const port::StreamId stream = honest_.open();
    pump();
    const Bytes content = pattern(1, 3000);
    honest_.arrive(stream, stream_of(kWorld, honest_sequence_) + std::span(content).first(1000));
    pump();
    ASSERT_EQ(into.ended, 0);
    evict_hostile();
    expect_lost(into);
    const Bytes before = into.memory;
    honest_.arrive(stream, std::span(content).subspan(1000));
    pump();
    EXPECT_EQ(into.memory, before);
    EXPECT_EQ(honest_.incoming(), 0U);
}

TEST_F(EvictTest, receive_whose_message_arrives_on_the_lane_ends) {
    Asked& into = receive(kHonest, 5);
    const Bytes whole = eager(header(honest_sequence_, 5, 200));
    honest_.arrive(Lane::eager, std::span(whole).first(whole.size() - 50));
    pump();
    evict_hostile();
    expect_lost(into);
    const Bytes before = into.memory;
    honest_.arrive(Lane::eager, std::span(whole).last(50));
    pump();
    EXPECT_EQ(into.memory, before);
    expect_staying_works();
}

TEST_F(EvictTest, later_operations_fail_in_the_same_way) {
    evict_hostile();
    hostile_.go_down(Error(Errc::link_closed, "dropped"));
    pump();
    const Asked& to_lost = send(kHostile, 10);
    const Asked& to_other = send(kHonest, 10);
    const Asked& from_any = receive_in(*world_, {});
    const Asked& probe = probe_in(*world_, {});
    const Asked& collective = barrier_in(*world_);
    pump();
    for (const Asked* asked : {&to_lost, &to_other, &from_any, &probe, &collective}) {
        expect_lost(*asked);
    }
    EXPECT_FALSE(engine_->send_at_once(*world_, kHonest, Tag(1), {}));
    expect_staying_works();
}

TEST_F(EvictTest, arrived_messages_can_no_longer_be_received) {
    honest_.arrive(Lane::eager, eager(header(honest_sequence_++, 5, 100)));
    says(Lane::eager, eager(header(0, 5, 100)));
    honest_.arrive(Lane::eager, bulk(header(honest_sequence_++, 5, 3000)));
    ASSERT_EQ(engine_->messages(), 3U);
    evict_hostile();
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_FALSE(engine_->look(*world_, {}));
    EXPECT_EQ(engine_->take(*world_, {}), nullptr);
    expect_lost(receive_in(*world_, {.source = kHonest, .tag = Tag(5)}));
}

TEST_F(EvictTest, message_that_the_caller_had_taken_fails_and_is_freed) {
    honest_.arrive(Lane::eager, bulk(header(honest_sequence_++, 5, 3000)));
    pump();
    InMessage* const taken = engine_->take(*world_, {.source = kHonest, .tag = Tag(5)});
    ASSERT_NE(taken, nullptr);
    evict_hostile();
    Asked& into = asked_.emplace_back(3000);
    into.receive.owner = &into;
    into.receive.content = {&into.region, 1};
    engine_->start(*taken, into.receive);
    pump();
    expect_lost(into);
    EXPECT_EQ(engine_->messages(), 0U);
}

TEST_F(EvictTest, messages_that_survivors_still_send_are_dropped_and_give_their_credit_back) {
    evict_hostile();
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t sequence = honest_sequence_++;
        switch (i % 3) {
            case 0:
                honest_.arrive(Lane::eager, eager(header(sequence, 5, 200)));
                break;
            case 1: {
                wire::BulkHeader held{header(sequence, 5, 3000)};
                held.awaits_grant = true;
                honest_.arrive(Lane::eager, said(held));
                break;
            }
            default: {
                honest_.arrive(Lane::eager, bulk(header(sequence, 5, 3000)));
                const port::StreamId stream = honest_.open();
                pump();
                honest_.arrive(stream, stream_of(kWorld, sequence) + pattern(1, 100));
            }
        }
        pump();
    }
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(honest_.incoming(), 0U);
    EXPECT_FALSE(honest_.closed()) << *honest_.closed();
    expect_staying_works();
}

TEST_F(EvictTest, stream_that_arrives_before_its_header_is_refused) {
    evict_hostile();
    const port::StreamId stream = honest_.open();
    pump();
    honest_.arrive(stream, stream_of(kWorld, honest_sequence_) + pattern(1, 100));
    pump();
    honest_.arrive(Lane::eager, bulk(header(honest_sequence_++, 5, 3000)));
    pump();
    EXPECT_EQ(honest_.incoming(), 0U);
    EXPECT_EQ(engine_->messages(), 0U);
}

TEST_F(EvictTest, collective_messages_that_survivors_still_send_are_dropped) {
    barrier_in(*world_);
    evict_hostile();
    for (std::uint64_t i = 0; i < 10; ++i) {
        honest_.arrive(Lane::eager, said(wire::CollectiveHeader{.context = kWorld,
                                                                .sequence = Sequence(i),
                                                                .operation = i,
                                                                .size = 3000,
                                                                .place = PayloadPlace::stream}));
        const port::StreamId stream = honest_.open();
        pump();
        honest_.arrive(stream, said(wire::Preamble{.lane = wire::Lane::collective,
                                                   .context = kWorld,
                                                   .sequence = Sequence(i)}));
        pump();
    }
    EXPECT_EQ(honest_.incoming(), 0U);
    EXPECT_FALSE(honest_.closed());
    expect_staying_works();
}

TEST_F(EvictTest, survivors_hear_why_their_collective_fails) {
    barrier_in(*world_);
    evict_hostile();
    const auto aborts =
        nexar::testing::frames_of<wire::CollectiveAbort>(honest_.written(Lane::eager));
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].code, Errc::membership_changed);
    EXPECT_TRUE(aborts[0].gone);
    EXPECT_THAT(aborts[0].text, ::testing::HasSubstr("rank 1 was lost in epoch 5"));
}

TEST_F(EvictTest, nothing_that_the_lost_node_sends_afterwards_is_delivered) {
    engine_->evict(std::array{node(1)}, kLossEpoch);
    hostile_.arrive(Lane::rpc, with_payload(request(0, 10)));
    hostile_.arrive(Lane::eager, eager(header(0, 5, 100)));
    hostile_.arrive(Lane::control, said(wire::Abort{.code = 1, .rank = kHostile, .text = {}}));
    hostile_.arrive(Lane::control, said(wire::Suspicion{.node = node(2).bytes()}));
    const port::StreamId stream = hostile_.open();
    pump();
    hostile_.arrive(stream, stream_of(kWorld, 0) + pattern(1, 100));
    pump();
    EXPECT_EQ(next_call(), nullptr);
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_FALSE(engine_->aborted());
    EXPECT_FALSE(engine_->poll_membership());
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_staying_works();
}

TEST_F(EvictTest, news_that_came_before_the_eviction_is_not_reported_after_it) {
    says(Lane::control, said(wire::Suspicion{.node = node(2).bytes()}));
    evict_hostile();
    EXPECT_FALSE(engine_->poll_membership());
}

TEST_F(EvictTest, lost_node_cannot_connect_again) {
    evict_hostile();
    FakeLink again(port::LinkId(31), {.cluster = {}, .node = node(1), .incarnation = {}});
    again.come_up();
    const auto up = again.poll_event();
    ASSERT_TRUE(up);
    engine_->handle(*up);
    EXPECT_TRUE(again.closed());
    std::unique_ptr<LaneReader> none;
    EXPECT_FALSE(engine_->take_over(again, none, 0));
}

TEST_F(EvictTest, next_process_with_the_same_node_id_can_connect) {
    View view{.epoch = kLossEpoch};
    view.members = {{.node = node(0), .rank = Rank(0)},
                    {.node = node(2), .rank = Rank(2)},
                    {.node = node(1), .incarnation = Incarnation(2), .rank = Rank(3)}};
    engine_->set_view(view);
    evict_hostile();
    FakeLink old(port::LinkId(31), {.cluster = {}, .node = node(1), .incarnation = Incarnation(1)});
    engine_->add_peer(node(1));
    old.come_up();
    engine_->handle(*old.poll_event());
    EXPECT_TRUE(old.closed());
    FakeLink fresh(port::LinkId(32),
                   {.cluster = {}, .node = node(1), .incarnation = Incarnation(2)});
    fresh.come_up();
    engine_->handle(*fresh.poll_event());
    EXPECT_FALSE(fresh.closed());
    EXPECT_TRUE(engine_->is_connected(node(1)));
    EXPECT_EQ(engine_->add_peer(node(1)).rank, Rank(3));
    Called& called = called_.emplace_back();
    called.call.owner = static_cast<Asked*>(&called);
    called.call.node = node(1);
    called.call.name = "echo";
    engine_->start(*staying_, called.call);
    pump();
    EXPECT_EQ(called.ended, 0) << "the call did not go to the new process";
    Context& next = engine_->add_context(ContextId(40), std::array{node(0), node(1)}, kMe,
                                         {.epoch = kLossEpoch});
    EXPECT_FALSE(next.over);
    const Asked& sent = send_in(next, Rank(1), 10);
    pump();
    EXPECT_EQ(sent.ended, 1);
    EXPECT_FALSE(sent.error());
    expect_lost(receive_in(*world_, {}));
    engine_->close();
    fresh.go_down(Error(Errc::link_closed, "closed"));
    while (const auto event = fresh.poll_event()) engine_->handle(*event);
}

TEST_F(EvictTest, calls_of_the_lost_node_end_and_others_go_on) {
    const Called& sent = call(kHostile, 10);
    const Called& streaming = call(kHostile, 3000);
    const Called& other = call(kHonest, 10);
    evict_hostile();
    hostile_.go_down(Error(Errc::link_closed, "dropped"));
    pump();
    for (const Called* called : {&sent, &streaming}) {
        expect_failed(*called, Errc::membership_changed);
        EXPECT_THAT(called->call.error->cause(), ::testing::HasSubstr("lost in epoch 5"));
        EXPECT_THAT(called->call.error->cause(), ::testing::HasSubstr("may or may not have run"));
    }
    expect_failed(call(kHostile, 10), Errc::membership_changed);
    EXPECT_EQ(other.ended, 0);
    const Called& later = call(kHonest, 10);
    for (const std::uint64_t id : {0U, 1U}) {
        honest_.arrive(Lane::rpc, said(response(id, 0)));
    }
    pump();
    for (const Called* called : {&other, &later}) {
        EXPECT_EQ(called->ended, 1);
        EXPECT_FALSE(called->call.error);
    }
}

TEST_F(EvictTest, running_call_of_the_lost_node_is_stopped) {
    says(Lane::rpc, with_payload(request(0, 10)));
    InCall* const running = next_call();
    ASSERT_NE(running, nullptr);
    evict_hostile();
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    respond(*running, Bytes{});
    expect_staying_works();
}

TEST_F(EvictTest, communicator_that_is_made_later_with_a_lost_member_fails_at_once) {
    evict_hostile();
    Context& late = engine_->add_context(ContextId(50), std::array{node(0), node(2), node(1)}, kMe);
    const Asked& asked = receive_in(late, {});
    expect_ended_with(asked, Errc::membership_changed, "rank 2 was lost in epoch 5");
}

TEST_F(EvictTest, node_that_was_never_a_peer_is_remembered) {
    engine_->evict(std::array{node(9)}, Epoch(4));
    Context& late = engine_->add_context(ContextId(50), std::array{node(0), node(9)}, kMe);
    expect_ended_with(receive_in(late, {}), Errc::membership_changed, "rank 1 was lost in epoch 4");
    EXPECT_EQ(waiting_->ended, 0);
}

TEST_F(EvictTest, later_loss_is_named_too) {
    evict_hostile();
    engine_->evict(std::array{node(2)}, Epoch(7));
    honest_.go_down(Error(Errc::link_closed, "dropped"));
    pump();
    expect_ended_with(receive_in(*world_, {}), Errc::membership_changed,
                      "rank 1 was lost in epoch 5; rank 2 was lost in epoch 7");
    expect_ended_with(receive_in(*staying_, {}), Errc::membership_changed,
                      "rank 1 was lost in epoch 7");
}

TEST_F(EvictTest, nodes_that_are_lost_together_are_named_together) {
    engine_->evict(std::array{node(2), node(1)}, kLossEpoch);
    honest_.go_down(Error(Errc::link_closed, "dropped"));
    hostile_.go_down(Error(Errc::link_closed, "dropped"));
    pump();
    expect_ended_with(*waiting_, Errc::membership_changed, "ranks 1, 2 were lost in epoch 5");
}

TEST_F(EvictTest, second_eviction_of_a_node_does_nothing) {
    evict_hostile();
    evict_hostile(Epoch(6));
    expect_lost(receive_in(*world_, {}));
}

TEST_F(EvictTest, communicator_that_lost_a_member_can_be_ended) {
    Context& fresh =
        engine_->add_context(ContextId(60), std::array{node(0), node(1), node(2)}, kMe);
    honest_.arrive(Lane::eager, begins(ContextId(60), kHonest));
    says(Lane::eager, begins(ContextId(60), kHostile));
    const Asked& asked = receive_in(fresh, {});
    evict_hostile();
    EXPECT_EQ(asked.ended, 1);
    engine_->end_context(fresh);
    pump();
    const auto ends = nexar::testing::frames_of<wire::ContextEnd>(honest_.written(Lane::eager));
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].context, ContextId(60));
    expect_staying_works();
}

TEST_F(EvictTest, view_says_who_is_a_member) {
    EXPECT_FALSE(engine_->in_view(node(0)));
    View view{.epoch = Epoch(3)};
    view.members = {{.node = node(0), .rank = Rank(0)}, {.node = node(2), .rank = Rank(2)}};
    engine_->set_view(view);
    EXPECT_EQ(engine_->epoch(), Epoch(3));
    EXPECT_TRUE(engine_->in_view(node(0)));
    EXPECT_FALSE(engine_->in_view(node(1)));
}

}  // namespace
}  // namespace nexar::engine
