#pragma once

#include <nexar/result.hpp>
#include <span>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// Proves that the schedules of all ranks, given in the order of ranks, do what the requests ask
/// for, however messages are delayed and steps interleave. Checks in this order:
///
/// 1. Form: slices lie within their buffers, no step writes to the input, counts agree, and every
///    send
///    has exactly one receive, with the same count and segment.
/// 2. No deadlock even if a send ends only after its receive has begun: nothing relies on
///    buffering, except in memory, where a send is a copy.
/// 3. No hazard: dependencies order any two steps that access the same elements if one of them
///    writes;
///    sent memory is in use until its release.
/// 4. Values, by symbolic execution: every element of the result is the right fold of the right
///    elements, with each rank's contribution once, in the order, along the tree and equal between
///    ranks as the operation and the traits guarantee. For a barrier: a rank that leaves has heard
///    from every rank.
/// 5. In memory (see Medium): both ends of a message have the same place and stage, no two sends of
///    a rank overlap in its segment unless they are the same copy, and the phases of each round
///    run the steps in an order that their dependencies allow.
///
/// The running time does not depend on the number of elements. The Error names the algorithm, the
/// rank, the step and what is wrong.
Result<void> check(const Algorithm& algorithm, std::span<const Request> requests,
                   std::span<const Schedule> schedules);

}  // namespace nexar::schedule
