#pragma once

#include "schedule/request.hpp"

/// Schedules for all_gather. Cost terms: n = world, S = elements of the result.
namespace nexar::schedule::all_gather {

Schedule ring(const Request& request);
Schedule recursive_doubling(const Request& request);
Schedule bruck(const Request& request);

}  // namespace nexar::schedule::all_gather
