#pragma once

#include "schedule/request.hpp"

/// Schedules for all_to_all. Cost terms: n = world, S = elements of one input.
namespace nexar::schedule::all_to_all {

Schedule pairwise(const Request& request);
Schedule windowed(const Request& request);
Schedule bruck(const Request& request);

}  // namespace nexar::schedule::all_to_all
