// The messages of the membership that the engine carries.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

class MembershipMailTest : public VerdictsTest {
protected:
    void datagram(const FakeLink& link, Bytes bytes) {
        engine_->handle({.link = link.id(), .what = port::DatagramArrived{std::move(bytes)}});
        pump();
    }
    std::size_t drain_news() {
        std::size_t count = 0;
        while (engine_->poll_membership()) ++count;
        return count;
    }
};

TEST_F(MembershipMailTest, frames_of_peers_are_reported_with_their_sender) {
    const wire::Suspicion suspicion{.step = wire::SuspicionStep::suspected,
                                    .node = node(2).bytes()};
    const wire::Ballot ballot{
        .step = wire::BallotStep::refused, .epoch = Epoch(4), .number = {.round = 1}};
    const wire::ViewFrame view{.epoch = Epoch(3)};
    says(Lane::control, said(suspicion));
    honest_.arrive(Lane::control, said(ballot));
    says(Lane::control, said(view));
    const auto first = engine_->poll_membership();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->from.node, node(1));
    EXPECT_EQ(std::get<wire::Suspicion>(first->message), suspicion);
    const auto second = engine_->poll_membership();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->from.node, node(2));
    EXPECT_EQ(std::get<wire::Ballot>(second->message), ballot);
    const auto third = engine_->poll_membership();
    ASSERT_TRUE(third);
    EXPECT_EQ(std::get<wire::ViewFrame>(third->message), view);
    EXPECT_FALSE(engine_->poll_membership());
    expect_not_disconnected();
}

TEST_F(MembershipMailTest, heartbeats_arrive_in_datagrams) {
    const wire::Heartbeat beat{.epoch = Epoch(2), .number = 9, .wants_answer = true};
    const std::uint64_t before = engine_->rare_frames();
    datagram(hostile_, said(beat));
    EXPECT_NE(engine_->rare_frames(), before);
    const auto news = engine_->poll_membership();
    ASSERT_TRUE(news);
    EXPECT_EQ(news->from.node, node(1));
    EXPECT_EQ(std::get<wire::Heartbeat>(news->message), beat);
}

TEST_F(MembershipMailTest, other_frames_do_not_belong_in_datagrams) {
    datagram(hostile_, said(wire::Suspicion{.node = node(2).bytes()}));
    EXPECT_FALSE(engine_->poll_membership());
    expect_disconnected(Errc::protocol_violation, "in a datagram");
}

TEST_F(MembershipMailTest, datagram_that_is_not_a_frame_is_a_violation) {
    datagram(hostile_, Bytes(3));
    EXPECT_TRUE(hostile_.closed());
    EXPECT_FALSE(engine_->poll_membership());
    EXPECT_FALSE(honest_.closed());
}

TEST_F(MembershipMailTest, datagram_with_more_than_a_frame_is_a_violation) {
    datagram(hostile_, said(wire::Heartbeat{}) + Bytes(1));
    expect_disconnected(Errc::malformed, "not one whole frame");
}

TEST_F(MembershipMailTest, flood_of_one_peer_is_bounded_and_does_not_silence_another) {
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        datagram(hostile_, said(wire::Heartbeat{.number = i}));
        says(Lane::control, said(wire::Suspicion{.node = node(2).bytes(), .counter = i}));
    }
    honest_.arrive(Lane::control, said(wire::Suspicion{.node = node(1).bytes()}));
    expect_not_disconnected();
    std::size_t of_hostile = 0;
    std::size_t of_honest = 0;
    while (const auto news = engine_->poll_membership()) {
        ++(news->from.node == node(1) ? of_hostile : of_honest);
    }
    EXPECT_LE(of_hostile, MembershipQueue::kMostMessages);
    EXPECT_GE(of_hostile, 1U);
    EXPECT_EQ(of_honest, 1U);
    says(Lane::control, said(wire::Suspicion{.node = node(2).bytes()}));
    EXPECT_EQ(drain_news(), 1U);
}

TEST_F(MembershipMailTest, messages_are_sent_on_the_control_lane) {
    const wire::Suspicion suspicion{.step = wire::SuspicionStep::hears, .node = node(1).bytes()};
    engine_->send_membership(node(2), suspicion);
    engine_->send_membership(node(2), wire::Ballot{.epoch = Epoch(4), .number = {.round = 1}});
    engine_->send_membership(node(2), wire::ViewFrame{.epoch = Epoch(3)});
    // This kind of link has no datagrams.
    engine_->send_membership(node(2), wire::Heartbeat{.number = 3});
    engine_->send_membership(node(9), suspicion);
    EXPECT_EQ(control_of<wire::Suspicion>(honest_), std::vector{suspicion});
    EXPECT_EQ(control_of<wire::Ballot>(honest_).size(), 1U);
    EXPECT_EQ(control_of<wire::ViewFrame>(honest_).size(), 1U);
    EXPECT_EQ(control_of<wire::Heartbeat>(honest_).size(), 1U);
    EXPECT_TRUE(control_of<wire::Suspicion>(hostile_).empty());
}

TEST_F(MembershipMailTest, peer_that_does_not_read_is_not_flooded) {
    hostile_.set_room(Lane::control, 0);
    for (int i = 0; i < 1000; ++i) {
        engine_->send_membership(node(1), wire::Suspicion{.node = node(2).bytes()});
    }
    expect_not_disconnected();
    hostile_.set_room(Lane::control, 1 << 20);
    pump();
    EXPECT_LE(control_of<wire::Suspicion>(hostile_).size(), MembershipQueue::kMostMessages);
}

TEST_F(MembershipMailTest, nothing_is_sent_to_a_node_that_was_evicted) {
    engine_->evict(std::array{node(1)}, kLossEpoch);
    engine_->send_membership(node(1), wire::Suspicion{.node = node(2).bytes()});
    EXPECT_TRUE(control_of<wire::Suspicion>(hostile_).empty());
}

}  // namespace
}  // namespace nexar::engine
