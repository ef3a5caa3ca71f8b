#pragma once

#include <cstdint>

#include "schedule/algorithm.hpp"
#include "schedule/rates.hpp"

namespace nexar::schedule {

/// What decides about the time of a collective; equal on all ranks.
struct Extent {
    std::uint32_t world = 1;
    double bytes = 0;    // of the whole vector: chunks.total(), or of all_to_all's input
    double chunk = 0;    // of the largest chunk
    double segment = 0;  // 0: none
    std::uint32_t window = 4;
};

/// How long an algorithm takes, in seconds, by a formula: rounds, messages, bytes and folds on the
/// longest way through the schedules; or, where ranks share processors, all that they do together,
/// divided by the processors, and the turns they wait for. What run_on_clock() says of the
/// schedules themselves is near it, how near says cost_test.cpp, but takes time that grows with the
/// world. Not for algorithms that need a tree drawn.
double predicted_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates);

}  // namespace nexar::schedule
