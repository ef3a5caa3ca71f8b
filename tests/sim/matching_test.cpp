#include <gtest/gtest.h>

#include "cluster.hpp"
#include "support/seed.hpp"
#include "traffic.hpp"

namespace nexar::testing {
namespace {

TEST(Matching, follows_mpi_rules_on_simulated_links) {
    expect_mpi_rules_in_runs<SimCluster>(
        {.first_seed = test_seed(1), .seeds = 25, .operations = 400});
}

TEST(Matching, follows_mpi_rules_on_quic_over_simulated_datagrams) {
    expect_mpi_rules_in_runs<QuicCluster>(
        {.first_seed = test_seed(1), .seeds = 10, .operations = 400});
}

TEST(Matching, follows_mpi_rules_with_many_pending_operations) {
    const std::uint64_t seed = test_seed(1000);
    Traffic<SimCluster> traffic(seed, 3);
    ASSERT_NO_FATAL_FAILURE(traffic.run(20'000));
}

TEST(Matching, follows_mpi_rules_when_cancelled_operations_do_not_wait_for_peers) {
    const std::uint64_t first = test_seed(500);
    std::size_t lost = 0;
    std::size_t unknown = 0;
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
        SCOPED_TRACE(seed);
        Traffic<SimCluster> traffic(seed, 3, std::chrono::microseconds(500 * (seed % 7)));
        ASSERT_NO_FATAL_FAILURE(traffic.run(1'000));
        lost += traffic.lost();
        unknown += traffic.unknown();
    }
    EXPECT_GT(lost, 0U);
    EXPECT_GT(unknown, 0U);
}

template <class Cluster>
std::uint64_t trace_of(std::uint64_t seed) {
    Traffic<Cluster> traffic(seed, 3);
    traffic.run(300);
    return traffic.trace();
}

TEST(Matching, runs_identically_with_the_same_seed) {
    const std::uint64_t seed = test_seed(3);
    const std::uint64_t once = trace_of<SimCluster>(seed);
    EXPECT_EQ(once, trace_of<SimCluster>(seed));
    EXPECT_NE(once, trace_of<SimCluster>(seed + 1));
}

TEST(Matching, runs_identically_with_the_same_seed_on_quic) {
    const std::uint64_t seed = test_seed(3);
    const std::uint64_t once = trace_of<QuicCluster>(seed);
    EXPECT_EQ(once, trace_of<QuicCluster>(seed));
    EXPECT_NE(once, trace_of<QuicCluster>(seed + 1));
}

}  // namespace
}  // namespace nexar::testing
