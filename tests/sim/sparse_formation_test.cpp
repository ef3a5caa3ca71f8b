#include "sparse_formation.hpp"

#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(SparseFormation, of_128_nodes_takes_less_than_5_seconds) {
    expect_formation({.nodes = 128, .topology = "k_regular:8", .seed = test_seed(1)});
}

}  // namespace
}  // namespace nexar::testing
