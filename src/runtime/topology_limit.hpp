#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <string_view>

#include "routing/topology.hpp"

namespace nexar::runtime {

/// Reads a value of the setting topology. Fails if packets cannot reach all of this many members.
Result<routing::Topology> topology_for(std::string_view text, std::size_t members);

/// The most members that a cluster with this topology can have.
std::size_t most_members(const routing::Topology& topology) noexcept;

}  // namespace nexar::runtime
