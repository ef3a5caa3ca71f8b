#pragma once

#include "schedule/request.hpp"

/// Schedules for scatter. Cost terms: n = world, S = elements of the root's input.
namespace nexar::schedule::scatter {

Schedule flat(const Request& request);
Schedule binomial(const Request& request);

}  // namespace nexar::schedule::scatter
