#pragma once

#include <nexar/result.hpp>

#include "schedule/check/graph.hpp"

namespace nexar::schedule {

/// Two steps of one rank that touch the same elements, one of them writing, are ordered.
Result<void> check_hazards(const Run& run, const EventGraph& graph);

/// No rank has more sends, or receives, under way at a time than Traits::window says.
Result<void> check_window(const Run& run, const EventGraph& graph);

}  // namespace nexar::schedule
