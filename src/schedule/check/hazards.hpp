#pragma once

#include <nexar/result.hpp>

#include "schedule/check/graph.hpp"

namespace nexar::schedule {

/// Checks that any two steps of a rank that access the same elements, one of them writing, are
/// ordered.
Result<void> check_hazards(const Run& run, const EventGraph& graph);

/// Checks that no rank has more sends, or more receives, in flight than Traits::window allows.
Result<void> check_window(const Run& run, const EventGraph& graph);

}  // namespace nexar::schedule
