// The setting min_world and SeedOptions::max_world.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <string_view>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorldLimits : public ElasticCluster {
protected:
    /// Starts to join, and waits until the seed has refused that because there is no room.
    std::future<Node> join_full_cluster() {
        std::promise<void> refused;
        std::atomic<bool> told = false;
        set_log_sink([&](const LogRecord& record) {
            const bool full = record.text.find("the cluster is complete") != std::string_view::npos;
            if (full && !told.exchange(true)) refused.set_value();
        });
        auto joining = join_soon();
        EXPECT_EQ(refused.get_future().wait_for(kElasticPatience), std::future_status::ready);
        set_log_sink({});
        return joining;
    }
};

TEST_F(WorldLimits, shrink_below_min_world_fails_on_all_ranks) {
    form({.world = 3, .processes = {1}, .settings = {{"min_world", "3"}}});
    kill(1);
    on_nodes([](Node& node) {
        const Communicator world = node.world();
        EXPECT_EQ(failure_of_sums(world).code(), Errc::membership_changed);
        for (int attempt = 0; attempt < 2; ++attempt) {
            const Error error = error_of([&] { return world.shrink(); });
            EXPECT_EQ(error.code(), Errc::membership_changed);
            EXPECT_THAT(error.what(),
                        HasSubstr("only 2 ranks are left, and the setting min_world is 3"));
        }
        EXPECT_EQ(node.world().size(), 3) << "the old world stays";
        EXPECT_EQ(failure_of_sums(node.world()).code(), Errc::membership_changed);
    });
}

TEST_F(WorldLimits, shrink_to_min_world_succeeds) {
    form({.world = 4, .processes = {1}, .settings = {{"min_world", "3"}}});
    kill(1);
    on_nodes([](Node& node) {
        const Communicator world = node.world();
        EXPECT_EQ(failure_of_sums(world).code(), Errc::membership_changed);
        EXPECT_EQ(world.shrink().all_reduce(1, sum).wait(), 3);
    });
}

TEST_F(WorldLimits, automatic_recovery_below_min_world_lets_calls_fail) {
    form({.world = 3,
          .processes = {1},
          .settings = {{"min_world", "3"}, {"recovery", "automatic"}}});
    kill(1);
    on_nodes([](Node& node) {
        EXPECT_EQ(await_failures(node, 0).size(), 1U);
        const Communicator world = node.world();
        EXPECT_EQ(world.size(), 3);
        EXPECT_EQ(failure_of_sums(world).code(), Errc::membership_changed);
    });
}

TEST_F(WorldLimits, leave_below_min_world_fails_on_all_ranks_and_the_world_goes_on) {
    form({.world = 3, .settings = {{"min_world", "3"}}});
    node(1).leave();
    on_nodes([](Node& node) {
        const Error error = error_of([&] { return node.elastic_checkpoint(); });
        EXPECT_EQ(error.code(), Errc::membership_changed);
        EXPECT_THAT(error.what(), HasSubstr("only 2 ranks are left, and the setting min_world"));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 3);
    });
}

TEST_F(WorldLimits, leave_below_min_world_succeeds_if_another_process_joins) {
    form({.world = 3, .settings = {{"min_world", "3"}}});
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    node(1).leave();
    on_nodes([](Node& node) {
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_THAT(change->new_world.members().size(), node.rank() == 1 ? 1U : 3U);
    });
    EXPECT_THAT(keep(joining).world().members(), ElementsAre(0, 2, 3));
}

TEST_F(WorldLimits, joiner_beyond_max_world_waits_until_a_member_leaves) {
    form({.world = 3, .max_world = 3});
    auto joining = join_full_cluster();
    on_nodes([](Node& node) { EXPECT_FALSE(node.elastic_checkpoint().has_value()); });
    node(1).leave();
    on_nodes([](Node& node) { EXPECT_TRUE(node.elastic_checkpoint().has_value()); });
    close(1);
    Node& joined = keep(joining);
    await_members({0, 2, 3});
    on_nodes([&](Node& node) {
        if (node.rank() != joined.rank()) await_change(node);
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 5);
    });
}

TEST_F(WorldLimits, joiner_beyond_max_world_takes_the_place_of_a_killed_one) {
    form({.world = 4, .processes = {1}, .max_world = 4});
    auto joining = join_full_cluster();
    kill(1);
    Node& joined = keep(joining);
    EXPECT_EQ(joined.rank(), 4);
    await_members({0, 2, 3, 4});
    on_nodes([&](Node& node) {
        if (node.rank() != 4) {
            EXPECT_EQ(failure_of_sums(node.world()).code(), Errc::membership_changed);
            node.world().shrink();
            await_change(node);
        }
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 9);
    });
}

}  // namespace
}  // namespace nexar::testing
