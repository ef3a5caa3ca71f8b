#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "sparse_formation.hpp"
#include "sparse_operations.hpp"
#include "sparse_transfer.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

/// NEXAR_TEST_SEED is the first seed, NEXAR_SOAK_RUNS the number of seeds.
TEST(SparseTransferSoak, continues_within_a_second_when_a_relay_is_killed) {
    const char* const given = std::getenv("NEXAR_SOAK_RUNS");
    expect_transfers_survive_relays(
        {.first_seed = test_seed(1),
         .runs = given == nullptr ? 500 : std::strtoull(given, nullptr, 10)});
}

class SparseOperationsSoak : public ::testing::TestWithParam<SparseShape> {};

TEST_P(SparseOperationsSoak, work_with_few_connections) {
    SparseShape shape = GetParam();
    shape.seed = test_seed(shape.nodes);
    expect_every_operation_works(shape);
}

std::vector<SparseShape> all_shapes() {
    std::vector<SparseShape> shapes;
    for (const char* topology : {"k_regular:2", "k_regular:4", "hypercube"}) {
        for (const std::size_t nodes : {5U, 8U, 13U, 16U}) {
            shapes.push_back({.nodes = nodes, .topology = topology});
        }
    }
    return shapes;
}

INSTANTIATE_TEST_SUITE_P(Topology, SparseOperationsSoak, ::testing::ValuesIn(all_shapes()),
                         shape_name);

TEST(SparseFormationSoak, of_1024_nodes_takes_less_than_5_seconds) {
    expect_formation({.nodes = 1024, .topology = "k_regular:8", .seed = test_seed(1)});
}

}  // namespace
}  // namespace nexar::testing
