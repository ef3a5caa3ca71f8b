#include <gtest/gtest.h>

#include "cluster.hpp"
#include "collective_runs.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(CollectivesSoak, are_exact_in_a_thousand_runs) {
    expect_exact_runs<SimCluster>({.first_seed = test_seed(1), .seeds = 1000, .calls = 100});
}

TEST(CollectivesSoak, are_exact_in_a_thousand_runs_on_quic_with_packet_loss) {
    expect_exact_runs<QuicCluster>({.first_seed = test_seed(1), .seeds = 1000, .calls = 30});
}

}  // namespace
}  // namespace nexar::testing
