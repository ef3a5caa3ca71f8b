#pragma once

#include "schedule/request.hpp"

/// Schedules for broadcast. Cost terms: n = world, S = elements of the vector.
namespace nexar::schedule::broadcast {

Schedule flat(const Request& request);
Schedule binomial(const Request& request);
Schedule scatter_all_gather(const Request& request);
Schedule chain(const Request& request);

}  // namespace nexar::schedule::broadcast
