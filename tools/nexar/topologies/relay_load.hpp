#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "routing/graph.hpp"

namespace nexar {

/// Bytes that one member sends to another one.
struct Flow {
    routing::Position from = 0;
    routing::Position to = 0;
    double bytes = 0;
};

/// What all ways through a graph show.
struct GraphSurvey {
    std::uint32_t diameter = 0;
    double mean_hops = 0;
    /// The bytes that the busiest relay forwards for each byte that a member sends on average: when
    /// every member sends as much to every other one, and for each of the flows given. 0 where
    /// nothing is sent.
    double uniform_load = 0;
    std::vector<double> loads{};
};

/// Follows the ways of all messages. Every member sends a message to the first alternative of
/// routing::Routes, with nothing broken. `graph` must have at least two members.
///
/// routing::Routes answers for one pair; this takes O(edges) for all ways to one member.
GraphSurvey survey(const routing::Graph& graph, std::span<const std::vector<Flow>> flows = {});

}  // namespace nexar
