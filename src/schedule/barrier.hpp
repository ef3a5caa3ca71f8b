#pragma once

#include "schedule/request.hpp"

/// Schedules for barrier: messages without elements. Cost term: n = world.
namespace nexar::schedule::barrier {

Schedule flat(const Request& request);
Schedule dissemination(const Request& request);

}  // namespace nexar::schedule::barrier
