#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/overlay_of_five.hpp"

namespace nexar::engine::overlaying {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(RingOverlay, knows_the_neighbours_and_the_ways_to_all_others) {
    EXPECT_THAT(overlay_.neighbours().value(), ElementsAre(node(1), node(4)));
    EXPECT_TRUE(overlay_.is_neighbour(node(4)));
    EXPECT_FALSE(overlay_.is_neighbour(node(2)));
    ASSERT_TRUE(overlay_.way_to(Rank(2)));
    EXPECT_EQ(overlay_.way_to(Rank(2))->first, Rank(1));
    EXPECT_EQ(overlay_.way_to(Rank(2))->hops, 2U);
    EXPECT_FALSE(overlay_.way_to(Rank(0)));
}

TEST_F(RingOverlay, sends_packets_in_envelopes_to_the_nearest_relay) {
    send(2, packet(5));
    send(3, packet(6));
    ASSERT_EQ(links_.at(1)->relayed.size(), 1U);
    const auto seen = wire::decode_envelope(links_.at(1)->relayed.front()).value();
    EXPECT_EQ(seen.source, Rank(0));
    EXPECT_EQ(seen.target, Rank(2));
    EXPECT_TRUE(std::ranges::equal(seen.packet, packet(5)));
    EXPECT_EQ(sent_to(4).size(), 1U);
}

TEST_F(RingOverlay, loses_packets_for_itself_and_for_strangers) {
    send(0, packet(1));
    send(9, packet(2));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_THAT(sent_to(4), IsEmpty());
}

TEST_F(RingOverlay, gives_arriving_packets_to_the_carrier) {
    arrives(1, envelope(2, 0, 3), packet(9));
    EXPECT_THAT(carrier_.arrived, ElementsAre(std::pair(node(2), packet(9))));
}

TEST_F(RingOverlay, forwards_packets_of_others_with_one_hop_less) {
    arrives(1, envelope(1, 4, routing::kDefaultHops), packet(9));
    EXPECT_THAT(sent_to(4), ElementsAre(envelope(1, 4, routing::kDefaultHops - 1)));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_THAT(carrier_.arrived, IsEmpty());
}

TEST_F(RingOverlay, waits_while_a_link_takes_nothing) {
    links_.at(1)->busy = true;
    send(2, packet(5));
    EXPECT_THAT(sent_to(1), IsEmpty());
    links_.at(1)->busy = false;
    turn(1ms);
    EXPECT_EQ(sent_to(1).size(), 1U);
}

TEST_F(RingOverlay, drops_what_has_waited_too_long) {
    links_.at(1)->busy = true;
    send(2, packet(5));
    turn(1s);
    links_.at(1)->busy = false;
    turn();
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, goes_another_way_when_nothing_comes_back) {
    for (int i = 0; i < 10; ++i) {
        send(2, packet(5));
        now_ += 9ms;
    }
    EXPECT_EQ(sent_to(1).size(), 10U);
    EXPECT_THAT(sent_to(4), IsEmpty());
    now_ += 20ms;
    send(2, packet(5));
    EXPECT_THAT(sent_to(4), ElementsAre(::testing::Field(&wire::Envelope::choice, 1)));
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, keeps_its_way_while_answers_come) {
    for (int i = 0; i < 50; ++i) {
        send(2, packet(5));
        now_ += 50ms;
        arrives(1, envelope(2, 0, 3), packet(9));
    }
    EXPECT_EQ(sent_to(1).size(), 50U);
    EXPECT_THAT(sent_to(4), IsEmpty());
}

TEST_F(RingOverlay, leaves_a_way_on_which_only_altered_or_repeated_packets_come_back) {
    carrier_.accepts = false;
    for (int i = 0; i < 10; ++i) {
        send(2, packet(5));
        now_ += 9ms;
        arrives(1, envelope(2, 0, 3), packet(9));
    }
    EXPECT_EQ(sent_to(1).size(), 10U);
    now_ += 20ms;
    arrives(1, envelope(2, 0, 3), packet(9));
    send(2, packet(5));
    EXPECT_THAT(sent_to(4), ElementsAre(::testing::Field(&wire::Envelope::choice, 1)));
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, follows_only_new_packets_to_another_way_once_the_other_end_was_heard) {
    arrives(1, envelope(2, 0, 3), packet(9));
    carrier_.accepts = false;
    arrives(4, envelope(2, 0, 3, 1), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(1).size(), 1U);
    EXPECT_THAT(sent_to(4), IsEmpty());
}

TEST_F(RingOverlay, follows_the_first_packets_of_a_handshake_to_another_way) {
    carrier_.accepts = false;
    arrives(4, envelope(2, 0, 3, 1), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, does_not_take_a_pause_for_a_broken_way) {
    send(2, packet(5));
    now_ += 10s;
    send(2, packet(5));
    EXPECT_EQ(sent_to(1).size(), 2U);
}

TEST_F(RingOverlay, follows_the_other_end_to_another_way) {
    arrives(4, envelope(2, 0, 3, 1), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    arrives(1, envelope(2, 0, 3, 0), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U) << "an older choice";
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, avoids_a_neighbour_whose_link_is_down_and_tells_the_other) {
    const std::size_t before = links_.at(4)->written(port::Lane::control).size();
    links_.at(1)->go_down(Error(Errc::timed_out, "no answer"));
    turn();
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    EXPECT_EQ(overlay_.way_to(Rank(2))->hops, 3U);
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 4U) << "around the ring";
    EXPECT_GT(links_.at(4)->written(port::Lane::control).size(), before);
}

TEST_F(RingOverlay, avoids_a_neighbour_that_is_silent) {
    engine_.set_silent(node(1), true);
    turn();
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    engine_.set_silent(node(1), false);
    turn(1s);
    send(2, packet(5));
    EXPECT_EQ(sent_to(1).size(), 1U);
}

TEST_F(RingOverlay, never_relays_through_a_tunnel) {
    links_.at(1)->address = Address::tunnel(node(1).bytes());
    engine_.handle({.link = port::LinkId(101), .what = port::PathChanged{links_.at(1)->address}});
    turn();
    send(2, packet(5));
    send(1, packet(6));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_EQ(sent_to(4).size(), 2U);
}

TEST_F(RingOverlay, drops_what_should_cross_a_link_that_has_just_ended) {
    links_.at(4)->go_down(Error(Errc::timed_out, "no answer"));
    pump();
    links_.erase(4);
    arrives(1, envelope(1, 4, routing::kDefaultHops), packet(9));
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, disconnects_a_neighbour_that_forges_the_source) {
    arrives(1, envelope(2, 0, routing::kDefaultHops), packet(9));
    EXPECT_THAT(carrier_.arrived, IsEmpty());
    EXPECT_FALSE(engine_.is_connected(node(1)));
    EXPECT_TRUE(engine_.is_connected(node(4)));
}

TEST_F(RingOverlay, ignores_envelopes_of_members_that_are_not_neighbours) {
    connect(2);
    arrives(2, envelope(2, 0, 3), packet(9));
    EXPECT_THAT(carrier_.arrived, IsEmpty());
    EXPECT_TRUE(engine_.is_connected(node(2)));
}

TEST_F(RingOverlay, follows_the_view) {
    View next = view_;
    next.epoch = Epoch(2);
    std::erase_if(next.members, [](const Member& one) { return one.rank == Rank(1); });
    engine_.set_view(next);
    engine_.evict(std::array{node(1)}, next.epoch);
    overlay_.adopt(now_, next, identity(0));
    EXPECT_THAT(overlay_.neighbours().value(), ElementsAre(node(2), node(4)));
    connect(2);
    turn();
    arrives(4, envelope(4, 2, 10), packet(5));
    EXPECT_EQ(sent_to(2).size(), 1U);
}

TEST_F(RingOverlay, has_nothing_to_do_while_nothing_happens) {
    turn(2s);
    EXPECT_FALSE(overlay_.turn(now_));
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, leaves_all_members_to_the_mesh) {
    EXPECT_TRUE(overlay_.complete());
    EXPECT_EQ(overlay_.neighbours(), std::nullopt);
}

TEST_F(FullOverlay, does_nothing_before_its_first_view) {
    Overlay early({engine_, carrier_, signer_, neighbourhood_});
    EXPECT_FALSE(early.turn(now_));
    EXPECT_EQ(early.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, reaches_a_member_whose_link_is_silent_through_another_one) {
    engine_.set_silent(node(1), true);
    turn();
    send(1, packet(5));
    const auto first = ways_taken();
    EXPECT_THAT(first, ElementsAre(::testing::Ne(1U)));
    for (int i = 0; i < 3; ++i) send(1, packet(5));
    now_ += 101ms;
    EXPECT_EQ(ways_taken(), first);
    send(1, packet(5));
    const auto second = ways_taken();
    EXPECT_THAT(second, ElementsAre(::testing::Ne(1U)));
    EXPECT_NE(first, second) << "nothing came back";
    EXPECT_EQ(overlay_.way_to(Rank(1))->first, Rank(second.front()));
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 2U);
}

TEST_F(FullOverlay, tells_the_others_of_a_link_that_has_failed_for_a_second) {
    const std::size_t before = told();
    engine_.set_silent(node(1), true);
    turn();
    turn(990ms);
    EXPECT_EQ(told(), before);
    ASSERT_TRUE(overlay_.next_deadline());
    EXPECT_EQ(*overlay_.next_deadline(), now_ + 10ms);
    turn(10ms);
    EXPECT_GT(told(), before);
    turn(1s);
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, tells_nobody_of_a_member_that_leaves_the_view_in_time) {
    const std::size_t before = told();
    engine_.set_silent(node(1), true);
    turn();
    turn(600ms);
    View next = view_;
    next.epoch = Epoch(2);
    std::erase_if(next.members, [](const Member& one) { return one.rank == Rank(1); });
    engine_.set_view(next);
    engine_.evict(std::array{node(1)}, next.epoch);
    overlay_.adopt(now_, next, identity(0));
    turn(5s);
    EXPECT_EQ(told(), before);
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FormingRing, gives_each_link_a_second_after_the_one_before) {
    turn(900ms);
    connect(1);
    turn();
    const std::size_t before = told_to({1});
    turn(999ms);
    EXPECT_EQ(told_to({1}), before);
    turn(1ms);
    EXPECT_GT(told_to({1}), before);
}

TEST_F(FormingRing, waits_no_longer_for_links_when_both_are_up) {
    connect(1);
    connect(4);
    turn();
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
    const std::size_t before = told_to({1});
    links_.at(4)->go_down(Error(Errc::timed_out, "no answer"));
    turn();
    EXPECT_GT(told_to({1}), before);
}

TEST_F(FormingMesh, does_not_tell_the_others_of_a_link_that_may_still_come) {
    const std::size_t before = told_to({1, 2, 3});
    turn(30s - 1ms);
    EXPECT_EQ(told_to({1, 2, 3}), before);
    turn(1ms);
    turn(1s);
    EXPECT_GT(told_to({1, 2, 3}), before);
}

TEST_F(FullOverlay, uses_a_link_again_that_works_again) {
    engine_.set_silent(node(1), true);
    turn();
    turn(2s);
    const std::size_t before = told();
    engine_.set_silent(node(1), false);
    turn(20ms);
    EXPECT_GT(told(), before) << "the others hear of it, too";
    arrives(2, envelope(2, 1, 10), packet(5));
    EXPECT_THAT(ways_taken(), ElementsAre(1U));
}

TEST_F(FullOverlay, never_sends_packets_of_a_tunnel_over_the_link_that_it_replaces) {
    send(1, packet(5));
    EXPECT_THAT(ways_taken(), ElementsAre(::testing::Ne(1U)))
        << "the link works here, but perhaps not at its other end";
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 2U);
}

}  // namespace
}  // namespace nexar::engine::overlaying
