#pragma once

#include <nexar/result.hpp>

#include "schedule/check/graph.hpp"

namespace nexar::schedule {

/// Checks what an executor in memory relies on, see Medium: places, stages, phases and rounds.
Result<void> check_places(const Run& run, const EventGraph& graph);

}  // namespace nexar::schedule
