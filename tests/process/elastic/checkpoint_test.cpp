// What elastic_checkpoint() does when processes join, leave and do both.

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Checkpoint = ElasticCluster;

TEST_F(Checkpoint, applies_a_join_and_a_leave_together) {
    form({.world = 4});
    auto joining = join_soon();
    await_members({0, 1, 2, 3, 4});
    node(1).leave();
    on_nodes([](Node& node) {
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_EQ(change->old_world.size(), 4);
        EXPECT_THAT(change->left, ElementsAre(1));
        EXPECT_THAT(change->lost, IsEmpty());
        EXPECT_EQ(change->left_here, node.rank() == 1);
        if (node.rank() == 1) {
            EXPECT_THAT(change->new_world.members(), ElementsAre(1));
            EXPECT_THAT(change->joined, IsEmpty()) << "nobody joins the world of this rank";
        } else {
            EXPECT_THAT(change->joined, ElementsAre(3));
            EXPECT_THAT(change->new_world.members(), ElementsAre(0, 2, 3, 4));
        }
    });
    keep(joining);
    close(1);
    on_nodes([](Node& node) {
        EXPECT_THAT(node.world().members(), ElementsAre(0, 2, 3, 4));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 9);
        EXPECT_FALSE(node.elastic_checkpoint().has_value()) << "once is enough";
    });
}

TEST_F(Checkpoint, takes_in_two_processes_and_lets_two_ranks_go) {
    form({.world = 4});
    auto first = join_soon();
    auto second = join_soon();
    await_members({0, 1, 2, 3, 4, 5});
    node(0).leave();
    node(3).leave();
    on_nodes([](Node& node) {
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_THAT(change->left, ElementsAre(0, 3));
        if (!change->left_here) {
            EXPECT_THAT(change->joined, ElementsAre(2, 3));
        }
    });
    keep(first);
    keep(second);
    close(0);
    close(3);
    on_nodes([](Node& node) {
        EXPECT_THAT(node.world().members(), ElementsAre(1, 2, 4, 5));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 12);
    });
}

TEST_F(Checkpoint, lets_rank_0_leave) {
    form({.world = 3});
    node(0).leave();
    on_nodes([](Node& node) {
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_EQ(change->left_here, node.rank() == 0);
        EXPECT_THAT(change->left, ElementsAre(0));
    });
    close(0);
    on_nodes([](Node& node) {
        EXPECT_THAT(node.world().members(), ElementsAre(1, 2));
        EXPECT_EQ(node.world().rank(), node.rank() - 1);
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 3);
        EXPECT_FALSE(node.elastic_checkpoint().has_value());
    });
}

TEST_F(Checkpoint, world_of_a_process_that_has_left_is_the_process_itself) {
    form({.world = 3});
    node(2).leave();
    on_nodes([](Node& node) { EXPECT_TRUE(node.elastic_checkpoint().has_value()); });
    EXPECT_THAT(node(2).world().members(), ElementsAre(2));
    EXPECT_EQ(node(2).world().all_reduce(5, sum).wait(), 5);
}

TEST_F(Checkpoint, ranks_that_have_left_are_not_taken_in_again) {
    form({.world = 3});
    node(2).leave();
    on_nodes([](Node& node) { EXPECT_TRUE(node.elastic_checkpoint().has_value()); });
    // Rank 2 has not closed its node.
    for (const int rank : {0, 1}) EXPECT_THAT(node(rank).members(), ElementsAre(0, 1));
    const std::jthread other =
        in_thread([&] { EXPECT_FALSE(node(1).elastic_checkpoint().has_value()); });
    EXPECT_FALSE(node(0).elastic_checkpoint().has_value());
}

TEST_F(Checkpoint, process_that_joins_may_leave_again) {
    form({.world = 3});
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    on_nodes([](Node& node) { await_change(node); });
    keep(joining).leave();
    on_nodes([](Node& node) {
        static_cast<void>(node.world());
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_THAT(change->left, ElementsAre(3));
        EXPECT_EQ(change->left_here, node.rank() == 3);
    });
    close(3);
    on_nodes([](Node& node) { EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 3); });
}

TEST_F(Checkpoint, process_that_is_killed_after_it_joined_is_not_taken_in) {
    form({.world = 3});
    const int joiner = start_joiner();
    await_members({0, 1, 2, joiner});
    kill(joiner);
    await_members({0, 1, 2});
    on_nodes([](Node& node) {
        EXPECT_FALSE(node.elastic_checkpoint().has_value());
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 3);
    });
}

TEST_F(Checkpoint, joiner_whose_elders_are_gone_gets_an_error) {
    form({.world = 2, .processes = {0, 1}});
    auto joining = join_soon();
    Node& joiner = keep(joining);
    auto world =
        std::async(std::launch::async, [&] { return error_of([&] { return joiner.world(); }); });
    kill(0);
    await_members({1, 2});
    kill(1);
    const Error error = await_value(world);
    EXPECT_EQ(error.code(), Errc::membership_changed);
    EXPECT_THAT(error.what(), HasSubstr("were lost before they took this process in"));
}

}  // namespace
}  // namespace nexar::testing
