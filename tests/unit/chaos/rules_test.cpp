#include "chaos/rules.hpp"

#include <gtest/gtest.h>

#include "chaos/conditions.hpp"

namespace nexar::chaos {
namespace {

using namespace std::chrono_literals;

NodeId node(unsigned index) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[0] = static_cast<std::byte>(index);
    return NodeId(bytes);
}

View view_of(std::uint64_t epoch, const std::vector<unsigned>& ranks) {
    View view{.epoch = Epoch(epoch)};
    for (const unsigned rank : ranks) {
        view.members.push_back({.node = node(rank + 1), .rank = Rank(rank)});
    }
    view.next_rank = Rank(3);
    return view;
}

/// Four machines, of which 1 to 3 run the members with ranks 0 to 2.
class ChaosRules : public ::testing::Test {
protected:
    ChaosRules() {
        conditions_.change(world_.now(), [&] {
            for (std::size_t i = 0; i < conditions_.size(); ++i) {
                conditions_.machine(i).running = true;
                conditions_.machine(i).node = node(static_cast<unsigned>(i));
            }
        });
        for (unsigned i = 1; i <= 3; ++i) rules_.viewed(i, node(i), view_of(1, {0, 1, 2}), true);
        world_.run_for(10s);
    }

    sim::World world_{1};
    Conditions conditions_{4};
    Rules rules_{world_, conditions_, 500ms};
};

TEST_F(ChaosRules, are_kept_by_a_cluster_that_loses_a_killed_member) {
    conditions_.change(world_.now(), [&] { conditions_.machine(3).running = false; });
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    rules_.viewed(2, node(2), view_of(2, {0, 1}), false);
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
}

TEST_F(ChaosRules, find_two_lists_of_one_epoch) {
    rules_.leaves(node(3));
    rules_.leaves(node(2));
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    rules_.viewed(2, node(2), view_of(2, {0, 2}), false);
    EXPECT_EQ(rules_.rule(), "P2");
}

TEST_F(ChaosRules, find_an_epoch_that_falls) {
    rules_.viewed(1, node(1), view_of(2, {0, 1, 2}), false);
    rules_.viewed(1, node(1), view_of(1, {0, 1, 2}), false);
    EXPECT_EQ(rules_.rule(), "P2");
}

TEST_F(ChaosRules, find_an_epoch_that_nobody_decided) {
    rules_.viewed(1, node(1), view_of(3, {0, 1, 2}), false);
    EXPECT_EQ(rules_.rule(), "P2");
}

TEST_F(ChaosRules, find_the_eviction_of_a_reachable_member) {
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    EXPECT_EQ(rules_.rule(), "P4");
}

TEST_F(ChaosRules, allow_the_eviction_of_a_member_that_was_paused) {
    conditions_.change(world_.now(), [&] { ++conditions_.machine(3).pauses; });
    world_.run_for(1s);
    conditions_.change(world_.now(), [&] { --conditions_.machine(3).pauses; });
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
}

TEST_F(ChaosRules, forbid_the_eviction_of_a_member_that_only_one_other_cannot_reach) {
    conditions_.change(world_.now(), [&] { conditions_.cut(3, 1, true); });
    world_.run_for(5s);
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    EXPECT_EQ(rules_.rule(), "P4");
}

TEST_F(ChaosRules, find_two_sides_that_both_go_on) {
    conditions_.change(world_.now(), [&] {
        for (std::size_t other = 0; other < 3; ++other) {
            conditions_.cut(3, other, true);
            conditions_.cut(other, 3, true);
        }
    });
    rules_.partition({3});
    world_.run_for(5s);
    rules_.viewed(1, node(1), view_of(2, {0, 1}), false);
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
    rules_.viewed(3, node(3), view_of(3, {0, 1}), false);
    EXPECT_EQ(rules_.rule(), "P5");
}

TEST_F(ChaosRules, find_a_call_that_takes_too_long_while_nothing_is_disturbed) {
    const TimePoint began = world_.now();
    conditions_.change(world_.now(), [&] { conditions_.storm(true); });
    world_.run_for(60s);
    rules_.check_time(began, "a call");
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
    conditions_.change(world_.now(), [&] { conditions_.storm(false); });
    world_.run_for(rules_.bound() + 1ms);
    rules_.check_time(began, "a call");
    EXPECT_EQ(rules_.rule(), "P1");
}

TEST_F(ChaosRules, find_agreements_that_differ) {
    rules_.agreed(ContextId(1), 4, {.flags = 3});
    rules_.agreed(ContextId(1), 5, {.flags = 1});
    rules_.agreed(ContextId(2), 4, {.flags = 1});
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
    rules_.agreed(ContextId(1), 4, {.flags = 1});
    EXPECT_EQ(rules_.rule(), "P3");
}

TEST_F(ChaosRules, find_communicators_that_differ) {
    rules_.made(ContextId(1), {node(1), node(2)});
    rules_.made(ContextId(1), {node(1), node(2)});
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
    rules_.made(ContextId(1), {node(1), node(2), node(3)});
    EXPECT_EQ(rules_.rule(), "P3");
}

TEST_F(ChaosRules, number_the_messages_of_a_pair) {
    EXPECT_EQ(rules_.sends(ContextId(1), node(1), node(2)), 0U);
    EXPECT_EQ(rules_.sends(ContextId(1), node(1), node(2)), 1U);
    EXPECT_EQ(rules_.sends(ContextId(2), node(1), node(2)), 0U);
    EXPECT_EQ(rules_.receives(ContextId(1), node(1), node(2)), 0U);
    EXPECT_EQ(rules_.receives(ContextId(1), node(1), node(2)), 1U);
    EXPECT_FALSE(rules_.failed()) << rules_.failure();
    rules_.receives(ContextId(1), node(1), node(2));
    EXPECT_EQ(rules_.rule(), "P6") << "a message that nobody sent";
}

TEST_F(ChaosRules, keep_the_first_failure) {
    rules_.fail("P6", "first");
    rules_.fail("P1", "second");
    EXPECT_EQ(rules_.rule(), "P6");
    EXPECT_EQ(rules_.failure(), "first");
}

}  // namespace
}  // namespace nexar::chaos
