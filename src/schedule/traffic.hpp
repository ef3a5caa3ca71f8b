#pragma once

#include "schedule/cost.hpp"

namespace nexar::schedule {

/// What all ranks together do in one run of an algorithm.
struct Traffic {
    double messages = 0;
    double bytes = 0;   // of the messages
    double folded = 0;  // bytes
};

/// By a formula; how near it is to the schedules says cost_test.cpp. Not for algorithms that
/// need a tree drawn.
Traffic traffic_of(const Algorithm& algorithm, const Extent& extent);

}  // namespace nexar::schedule
