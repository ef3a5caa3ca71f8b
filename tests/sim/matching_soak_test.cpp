#include <gtest/gtest.h>

#include "cluster.hpp"
#include "support/seed.hpp"
#include "traffic.hpp"

namespace nexar::testing {
namespace {

TEST(MatchingSoak, follows_the_rules_of_mpi_in_a_thousand_long_runs) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 1000; ++seed) {
        SCOPED_TRACE(seed);
        Traffic<SimCluster> traffic(seed, 2 + seed % 6);
        ASSERT_NO_FATAL_FAILURE(traffic.run(100'000));
        ASSERT_FALSE(HasFailure());
    }
}

}  // namespace
}  // namespace nexar::testing
