#pragma once

#include <cstdint>

#include "process/sparse/sparse_world.hpp"

namespace nexar::testing {

/// All ranks run every operation. Then each is connected to its neighbours only, and reaches all
/// others through relays.
void expect_every_operation_works(const SparseShape& shape, std::uint64_t seed);

/// Kills a relay in the middle of a transfer of 64 MiB between two other ranks, and expects that it
/// continues within a second, and that every message arrives once. Returns the longest pause in
/// seconds.
double pause_after_relay_is_killed(const SparseShape& shape, std::uint64_t seed);

}  // namespace nexar::testing
