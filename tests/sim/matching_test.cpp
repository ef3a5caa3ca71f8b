#include <gtest/gtest.h>

#include "cluster.hpp"
#include "support/seed.hpp"
#include "traffic.hpp"

namespace nexar::testing {
namespace {

TEST(Matching, follows_the_rules_of_mpi_on_simulated_links) {
    expect_rules_kept<SimCluster>({.first_seed = test_seed(1), .seeds = 25, .operations = 400});
}

TEST(Matching, follows_the_rules_of_mpi_when_very_much_is_under_way) {
    const std::uint64_t seed = test_seed(1000);
    Traffic<SimCluster> traffic(seed, 3);
    ASSERT_NO_FATAL_FAILURE(traffic.run(20'000));
}

TEST(Matching, is_replayed_by_its_seed) {
    const std::uint64_t seed = test_seed(3);
    const auto trace = [&] {
        Traffic<SimCluster> traffic(seed, 3);
        traffic.run(300);
        return traffic.trace();
    };
    const std::uint64_t once = trace();
    EXPECT_EQ(once, trace());
    Traffic<SimCluster> other(seed + 1, 3);
    other.run(300);
    EXPECT_NE(once, other.trace());
}

}  // namespace
}  // namespace nexar::testing
