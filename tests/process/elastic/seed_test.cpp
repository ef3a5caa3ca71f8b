// What the seed says of a cluster whose members have changed.

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SeedOfChangingMembers : public ElasticCluster {
protected:
    /// Waits until all members have left.
    void await_empty_cluster(int world) {
        await("a cluster without members", [&] {
            return seed().status().starts_with("0 of " + std::to_string(world) + " joined");
        });
    }
};

TEST_F(SeedOfChangingMembers, says_that_a_cluster_has_formed_after_all_members_have_left) {
    form({.world = 2});
    EXPECT_TRUE(seed().formed());
    for (const int rank : here()) close(rank);
    await_empty_cluster(2);
    EXPECT_TRUE(seed().formed());
    EXPECT_FALSE(seed().give_up_on(1, "exited with code 0")) << "it has formed once";
}

TEST_F(SeedOfChangingMembers, says_that_no_cluster_has_formed_before_all_have_joined) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = 2;
    const Seed seed(options);
    EXPECT_FALSE(seed.formed());
}

TEST_F(SeedOfChangingMembers, names_a_rank_that_joined_later_as_the_one_that_aborted) {
    form({.world = 3});
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    node(1).leave();
    on_nodes([](Node& node) { await_change(node); });
    const Communicator world = keep(joining).world();
    EXPECT_THAT(world.members(), ElementsAre(0, 2, 3));
    EXPECT_EQ(world.rank(), 2) << "in the communicator; the seed and the others say 3";
    world.abort(9, "the input has ended");
    const std::optional<Error> reported = seed().aborted();
    ASSERT_TRUE(reported.has_value());
    EXPECT_EQ(reported->rank(), 3);
    EXPECT_EQ(reported->abort_code(), 9);
    EXPECT_THAT(reported->cause(), HasSubstr("rank 3 aborted the program with code 9"));
    const Error error = failure_of_sums(node(0).world());
    EXPECT_EQ(error.code(), Errc::aborted);
    EXPECT_EQ(error.rank(), 3);
}

TEST_F(SeedOfChangingMembers, reports_no_abort_of_a_process_that_has_left) {
    form({.world = 3});
    node(2).leave();
    on_nodes([](Node& node) { await_change(node); });
    await("a seed that knows of it",
          [&] { return seed().status().starts_with("2 members in epoch"); });
    node(2).world().abort(5, "too late");
    EXPECT_FALSE(seed().aborted().has_value());
}

}  // namespace
}  // namespace nexar::testing
