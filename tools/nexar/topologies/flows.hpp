#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/choice.hpp"
#include "topologies/relay_load.hpp"

namespace nexar {

/// The messages of a collective in a world of all members.
struct CollectiveFlows {
    /// Every member sends as much to every other one; then there is no list of flows.
    bool uniform = false;
    std::vector<Flow> flows{};
};

/// Counts the messages in the schedules of all members, with root 0. Where all members do the same
/// in many steps, it builds the schedule of only one. Returns nullopt if there are too many steps
/// to count.
std::optional<CollectiveFlows> flows_of(const schedule::Choice& choice,
                                        const schedule::Workload& workload,
                                        const schedule::Hops& hops);

}  // namespace nexar
