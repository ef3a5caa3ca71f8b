#pragma once

#include "routing/graph.hpp"
#include "routing/topology.hpp"
#include "schedule/hops.hpp"

namespace nexar {

/// The hops between the members of a view, in ascending order of ranks, for collectives among all
/// of them. `graph` is that of the topology.
schedule::Hops hops_of(const routing::Topology& topology, const routing::Graph& graph);

}  // namespace nexar
