#include "sparse_transfer.hpp"

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(SparseTransfer, continues_within_a_second_when_a_relay_is_killed) {
    expect_transfers_survive_relays(
        {.first_seed = test_seed(1), .runs = 10, .bytes = std::size_t{2} << 20U, .most_nodes = 8});
}

}  // namespace
}  // namespace nexar::testing
