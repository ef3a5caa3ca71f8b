#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "routing/topology.hpp"
#include "schedule/hops.hpp"
#include "schedule/timing.hpp"

/// Sparse topologies for the tests of schedules.
namespace nexar::schedule::testing {

/// The hops among members of ranks 0 to world - 1.
Hops hops_of(const routing::Topology& topology, std::uint32_t world);

std::vector<routing::Topology> sparse_topologies();

/// A few ranks of a world, in random order.
std::vector<std::uint32_t> some_ranks(std::uint32_t world, std::uint32_t count, Random& random);

/// Ways along shortest paths. Ties have an order that differs between pairs of ranks. For the ranks
/// of a whole cluster.
NextHop shortest_ways(const Hops& hops);

}  // namespace nexar::schedule::testing
