#pragma once

#include <cstdint>
#include <nexar/nexar.hpp>

namespace nexar::testing {

/// Runs every operation between all ranks of the node's world: collectives, the variants with
/// chunks of different sizes, messages and remote procedure calls between all pairs, and
/// communicators made from the world. All ranks must call it with the same seed. Throws if a result
/// differs from what this rank computes itself.
void run_every_operation(Node& node, std::uint64_t seed);

}  // namespace nexar::testing
