#pragma once

#include <nexar/node.hpp>
#include <optional>

#include "schedule/fit.hpp"

namespace nexar {

/// What `nexar tune` measured in a world; the parts that the world has.
struct Tuned {
    std::optional<schedule::LinkTimes> host{};    // between two ranks of one host
    std::optional<schedule::LinkTimes> fabric{};  // between two hosts
    std::optional<schedule::MemoryTimes> memory{};
    double shared_bandwidth = 0;  // of a host, if that is a limit

    /// The times of the rank itself are in both kinds of links.
    schedule::LinkTimes any() const {
        return fabric.value_or(host.value_or(schedule::LinkTimes{}));
    }
};

/// Measures a world of two or more ranks; all ranks call it together, and rank 0 gets the result.
/// Each measurement takes this many seconds. Throws nexar::Error.
Tuned measure_world(const Node& node, double seconds);

}  // namespace nexar
