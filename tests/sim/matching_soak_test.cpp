#include <gtest/gtest.h>

#include "cluster.hpp"
#include "support/seed.hpp"
#include "traffic.hpp"

namespace nexar::testing {
namespace {

TEST(MatchingSoak, follows_mpi_rules_in_a_thousand_long_runs) {
    expect_mpi_rules_in_runs<SimCluster>(
        {.first_seed = test_seed(1), .seeds = 1000, .operations = 100'000});
}

TEST(MatchingSoak, follows_mpi_rules_in_a_thousand_long_runs_on_quic) {
    expect_mpi_rules_in_runs<QuicCluster>(
        {.first_seed = test_seed(1), .seeds = 1000, .operations = 100'000});
}

}  // namespace
}  // namespace nexar::testing
