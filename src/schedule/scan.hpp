#pragma once

#include "schedule/request.hpp"

/// Schedules for scan and exclusive_scan: rank r gets the fold of ranks 0 to r, or to r - 1. Cost
/// terms: n = world, S = elements of the vector.
namespace nexar::schedule::scan {

Schedule recursive_doubling(const Request& request);
Schedule linear(const Request& request);
Schedule exclusive_recursive_doubling(const Request& request);
Schedule exclusive_linear(const Request& request);

}  // namespace nexar::schedule::scan
