#pragma once

#include "schedule/request.hpp"

/// Schedules for all_reduce. Cost terms: n = world, S = elements of the vector.
namespace nexar::schedule::all_reduce {

Schedule recursive_doubling(const Request& request);
Schedule ring(const Request& request);
Schedule segmented_ring(const Request& request);
Schedule halving_doubling(const Request& request);
Schedule reduce_scatter_all_gather(const Request& request);
Schedule tree(const Request& request);

}  // namespace nexar::schedule::all_reduce
