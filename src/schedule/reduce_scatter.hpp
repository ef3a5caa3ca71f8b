#pragma once

#include "schedule/request.hpp"

/// Schedules for reduce_scatter. Cost terms: n = world, S = elements of one input.
namespace nexar::schedule::reduce_scatter {

Schedule ring(const Request& request);
Schedule halving(const Request& request);

}  // namespace nexar::schedule::reduce_scatter
