#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "membership/membership.hpp"
#include "routing/topology.hpp"

namespace nexar::testing {

inline constexpr std::array<std::string_view, 2> kSparseTopologies = {"k_regular:4", "hypercube"};

/// In the name of a test.
inline std::string test_name(std::string_view topology) {
    std::string name(topology);
    std::ranges::replace(name, ':', '_');
    return name;
}

/// The neighbours of members under a topology, as a runtime would find them.
membership::NeighboursOf neighbours_under(const routing::Topology& topology);

}  // namespace nexar::testing
