#include <gtest/gtest.h>

#include "sparse_operations.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

/// sparse_sim_soak_tests runs all topologies at all sizes.
class SparseOperations : public ::testing::TestWithParam<SparseShape> {};

TEST_P(SparseOperations, work_with_few_connections) {
    SparseShape shape = GetParam();
    shape.seed = test_seed(shape.nodes);
    expect_every_operation_works(shape);
}

INSTANTIATE_TEST_SUITE_P(Topology, SparseOperations,
                         ::testing::Values(SparseShape{.nodes = 5, .topology = "k_regular:2"},
                                           SparseShape{.nodes = 8, .topology = "k_regular:2"},
                                           SparseShape{.nodes = 8, .topology = "k_regular:4"},
                                           SparseShape{.nodes = 16, .topology = "k_regular:4"},
                                           SparseShape{.nodes = 5, .topology = "hypercube"},
                                           SparseShape{.nodes = 13, .topology = "hypercube"}),
                         shape_name);

}  // namespace
}  // namespace nexar::testing
