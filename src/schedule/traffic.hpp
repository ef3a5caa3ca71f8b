#pragma once

#include "schedule/cost.hpp"

namespace nexar::schedule {

/// The work of all ranks together in one run of an algorithm.
struct Traffic {
    double messages = 0;
    double bytes = 0;   // in all messages
    double folded = 0;  // bytes
    /// Messages of two-level algorithms within hosts, which `messages` and `bytes` do not include.
    double near_messages = 0;
    double near_bytes = 0;
};

/// Computes the traffic by a formula; cost_test.cpp bounds its difference from the schedules. For
/// algorithms that need a given tree, Extent::stretches must have one.
Traffic traffic_of(const Algorithm& algorithm, const Extent& extent);

}  // namespace nexar::schedule
