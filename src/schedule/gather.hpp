#pragma once

#include "schedule/request.hpp"

/// Schedules for gather. Cost terms: n = world, S = elements of the result.
namespace nexar::schedule::gather {

Schedule flat(const Request& request);
Schedule binomial(const Request& request);

}  // namespace nexar::schedule::gather
