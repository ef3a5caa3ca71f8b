#pragma once

#include "schedule/request.hpp"

/// Schedules for reduce. Cost terms: n = world, S = elements of the vector.
namespace nexar::schedule::reduce {

Schedule binomial(const Request& request);
Schedule reduce_scatter_gather(const Request& request);

}  // namespace nexar::schedule::reduce
