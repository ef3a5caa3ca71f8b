#pragma once

#include <cstddef>
#include <cstdint>

namespace nexar::testing {

struct TransferRuns {
    std::uint64_t first_seed = 1;
    std::uint64_t runs = 1;
    std::size_t bytes = std::size_t{64} << 20U;
    std::size_t most_nodes = 16;  // of a cluster, which has at least 8
};

/// Kills a relay in the middle of a transfer between two ranks that are not neighbours, in a sparse
/// cluster of its own in each run, and expects that the transfer continues within a second, and
/// that all of it arrives once. Prints the longest pause.
void expect_transfers_survive_relays(const TransferRuns& runs);

}  // namespace nexar::testing
