#pragma once

#include <span>

#include "base/view.hpp"
#include "engine/neighbourhood.hpp"
#include "routing/graph.hpp"
#include "routing/topology.hpp"
#include "schedule/choice.hpp"
#include "schedule/hops.hpp"

namespace nexar::runtime {

/// The hops between the members of a view, in ascending order of ranks. `graph` is that of the
/// topology.
schedule::Hops hops_of(const routing::Topology& topology, const routing::Graph& graph);

/// Fills in what a profile knows about the ranks of a communicator: which of them share a host, and
/// how many hops are between them. `members` is ordered by rank in the communicator, and
/// `neighbourhood` is nullptr if all pairs connect.
///
/// All ranks must compute the same, but they may know different views when they make a
/// communicator. So the hops are those of a cluster that has these members alone: exact for the
/// world of a cluster, and an estimate if it has other members too.
void set_members(schedule::Profile& profile, std::span<const Member> members,
                 const engine::Neighbourhood* neighbourhood);

}  // namespace nexar::runtime
