#pragma once

#include <nexar/result.hpp>
#include <span>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// Proves that the schedules of all ranks, in the order of ranks, do together what the requests
/// ask, however messages are delayed and steps interleave. In turn:
///
/// 1. Form: slices lie in their buffers, input is not written, counts fit, every send has exactly
///    its receive, with the same count and segment.
/// 2. No deadlock, with sends that end only after their receive began: nothing leans on buffering.
/// 3. No hazard: two steps that touch the same elements, one of them writing, are ordered by
///    dependencies; memory that is sent is in use until its release.
/// 4. Values, by symbolic execution: every element of the result is the right fold of the right
///    elements, each rank's contribution once, in the order, tree and equality between ranks that
///    the operation and the traits promise. A barrier: who leaves has heard from everybody.
///
/// Nothing depends on the number of elements. The Error names algorithm, rank, step and what is
/// wrong.
Result<void> check(const Algorithm& algorithm, std::span<const Request> requests,
                   std::span<const Schedule> schedules);

}  // namespace nexar::schedule
