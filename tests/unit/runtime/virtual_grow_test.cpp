// Members that come and go on virtual time: nodes with their seed line and their membership, and
// seeds that end and return.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/virtual_join_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::HasSubstr;

TEST_F(VirtualGrow, processes_join_a_running_cluster_one_after_the_other) {
    form(1);
    for (std::size_t members = 2; members <= 5; ++members) {
        VirtualJoiner& joiner = join(token(1));
        ASSERT_TRUE(all_have(members)) << members << ": " << seed_->server().status();
        const Member* const own = joiner.view()->find(joiner.identity().node);
        ASSERT_NE(own, nullptr);
        EXPECT_EQ(own->rank, Rank(static_cast<std::uint32_t>(members - 1)));
        EXPECT_EQ(joiner.view()->epoch, Epoch(members)) << "one view for each";
        ASSERT_TRUE(seed_has(members)) << seed_->server().status();
    }
    EXPECT_EQ(seed_->server().view()->witness, seed_->server().self());
    EXPECT_EQ(seed_->server().view()->spent.size(), 5U);
}

TEST_F(VirtualGrow, several_processes_join_at_the_same_time) {
    form(3);
    const std::string join_string = token(5);
    for (int i = 0; i < 5; ++i) join(join_string);
    ASSERT_TRUE(all_have(8)) << seed_->server().status();
    EXPECT_EQ(nodes_.front()->view()->next_rank, Rank(8));
    EXPECT_LE(nodes_.front()->view()->epoch, Epoch(6));
    VirtualJoiner& late = join(join_string);
    ASSERT_TRUE(world_.run_until([&] { return late.line().failure().has_value(); }, 10s));
    EXPECT_EQ(late.line().failure()->code(), Errc::unauthenticated);
}

TEST_F(VirtualGrow, a_join_is_fast) {
    form(8);
    const TimePoint begun = world_.now();
    join(token(1));
    ASSERT_TRUE(all_have(9));
    EXPECT_LT(world_.now() - begun, 200ms);
}

TEST_F(VirtualGrow, a_joiner_waits_while_the_cluster_is_full) {
    form(2, 3);
    join(token(1));
    ASSERT_TRUE(all_have(3));
    VirtualJoiner late(net_, 99, token(1), &mesh_);
    world_.run_for(5s);
    EXPECT_FALSE(late.view());
    EXPECT_FALSE(late.line().failure());
    EXPECT_THAT(late.line().news(), HasSubstr("3 of at most 3 members"));
    nodes_.back()->leave();
    ASSERT_TRUE(world_.run_until([&] { return late.is_member(3); }, 10s))
        << seed_->server().status();
    EXPECT_TRUE(nodes_.back()->evicted());
    EXPECT_EQ(late.view()->find(late.identity().node)->rank, Rank(3)) << "ranks are not reused";
}

TEST_F(VirtualGrow, a_killed_member_is_replaced_by_a_new_node) {
    form(2);
    nodes_.pop_back();
    ASSERT_TRUE(all_have(1)) << "with the vote of the seed";
    join(token(1));
    ASSERT_TRUE(all_have(2));
    EXPECT_EQ(nodes_.front()->view()->members.back().rank, Rank(2));
    ASSERT_TRUE(seed_has(2)) << seed_->server().status();
}

TEST_F(VirtualGrow, members_return_to_a_restarted_seed_and_joins_go_on) {
    form(3);
    for (std::size_t i = 0; i < 4; ++i) {
        const std::string join_string = token(1);
        seed_.reset();
        world_.run_for(i * 3s);
        join(join_string);
        world_.run_for(i * 5s);
        restart_seed();
        ASSERT_TRUE(all_have(4 + i, 60s)) << i << ": " << seed_->server().status();
        ASSERT_TRUE(seed_has(4 + i, 60s)) << i << ": " << seed_->server().status();
    }
}

TEST_F(VirtualGrow, a_restarted_seed_learns_the_views_that_it_missed) {
    form(5);
    const std::string join_string = token(1);
    seed_.reset();
    nodes_.pop_back();
    ASSERT_TRUE(all_have(4)) << "members need no seed";
    nodes_.pop_back();
    ASSERT_TRUE(all_have(3)) << "three of the four members and the dead seed";
    restart_seed();
    EXPECT_EQ(seed_->server().view()->epoch, Epoch(1));
    ASSERT_TRUE(seed_has(3, 60s)) << seed_->server().status();
    EXPECT_EQ(seed_->server().view(), nodes_.front()->view());
    join(join_string);
    ASSERT_TRUE(all_have(4));
}

TEST_F(VirtualGrow, a_survivor_of_two_waits_for_the_seed) {
    form(2);
    seed_.reset();
    world_.run_for(20s);
    nodes_.pop_back();
    world_.run_for(20s);
    EXPECT_TRUE(nodes_.front()->is_member(2)) << "one of three voters decides nothing";
    restart_seed();
    EXPECT_TRUE(all_have(1, 60s)) << seed_->server().status();
}

TEST_F(VirtualGrow, the_seed_never_starts_a_new_world_because_members_vanished) {
    form(3);
    nodes_.clear();
    world_.run_for(2min);
    EXPECT_TRUE(seed_->server().formed());
    const std::string join_string = token(1);
    VirtualJoiner& late = join(join_string);
    world_.run_for(5s);
    EXPECT_FALSE(late.view());
    EXPECT_THAT(late.line().news(), HasSubstr("nexar members forget 0 1 2"));
    restart_seed();
    world_.run_for(2min);
    EXPECT_TRUE(seed_->server().formed());
}

TEST_F(VirtualGrow, the_next_cluster_has_a_higher_epoch) {
    form(2);
    for (const auto& node : nodes_) node->line().close({});
    ASSERT_TRUE(world_.run_until([&] { return !seed_->server().formed(); }, 10s));
    nodes_.clear();
    const std::string join_string = token(2);
    join(join_string);
    join(join_string);
    ASSERT_TRUE(all_have(2));
    EXPECT_GT(nodes_.front()->view()->epoch, Epoch(1));
}

TEST_F(VirtualGrow, all_members_leave_one_after_the_other) {
    form(3);
    while (!nodes_.empty()) {
        nodes_.back()->leave();
        ASSERT_TRUE(world_.run_until([&] { return nodes_.back()->evicted(); }, 10s))
            << nodes_.size();
        nodes_.pop_back();
    }
    EXPECT_TRUE(world_.run_until([&] { return !seed_->server().formed(); }, 10s))
        << seed_->server().status();
    EXPECT_TRUE(seed_->server().has_formed());
}

}  // namespace
}  // namespace nexar::runtime
