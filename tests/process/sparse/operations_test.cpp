#include <gtest/gtest.h>

#include "process/sparse/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(SparseOperations, work_with_at_most_4_connections_in_a_world_of_16) {
    expect_every_operation_works({.world = 16, .topology = "k_regular:4"}, test_seed(1));
}

TEST(SparseOperations, work_in_a_hypercube_of_5) {
    expect_every_operation_works({.world = 5, .topology = "hypercube"}, test_seed(1));
}

}  // namespace
}  // namespace nexar::testing
