#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routing/topology.hpp"
#include "schedule/choice.hpp"

namespace nexar {

/// What `nexar sim topologies` compares.
struct TopologyQuestion {
    std::vector<std::uint32_t> worlds{};
    std::vector<routing::Topology> topologies{};
    std::vector<schedule::Collective> operations{};
    std::vector<std::uint64_t> sizes{};  // bytes; a barrier has none
    schedule::Profile profile{};         // of a fully connected cluster
};

/// Of one collective.
struct CollectiveForecast {
    schedule::Collective operation{};
    std::uint64_t bytes = 0;
    /// Empty if there is less than one element for each member to send.
    std::string_view algorithm{};
    double seconds = 0;
    /// The bytes that the busiest relay forwards, relative to what a member sends on average;
    /// nullopt: not counted.
    std::optional<double> relay_load{};
};

/// Of one topology.
struct TopologyForecast {
    routing::Topology topology{};
    std::uint32_t members = 0;
    std::uint64_t connections = 0;
    std::uint64_t most_connections = 0;  // of one member
    std::uint32_t diameter = 0;
    double mean_hops = 0;
    double uniform_load = 0;
    std::vector<CollectiveForecast> collectives{};
};

Result<TopologyForecast> forecast(const TopologyQuestion& question,
                                  const routing::Topology& topology, std::uint32_t members);

/// All forecasts, of every topology in every world, in these orders.
Result<std::vector<TopologyForecast>> forecasts(const TopologyQuestion& question);

/// Tables, and the same as JSON.
std::string as_tables(const std::vector<TopologyForecast>& all);
std::string as_json(const std::vector<TopologyForecast>& all);

}  // namespace nexar
