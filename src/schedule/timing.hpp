#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <span>

#include "schedule/rates.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// What a collective would take on a fabric.
struct Timing {
    double seconds = 0;                  // until the last rank has all
    std::uint64_t most_bytes_sent = 0;   // by one rank
    std::uint64_t bytes_sent = 0;        // by all
    std::uint64_t most_messages = 0;     // sent by one rank
    std::uint32_t most_connections = 0;  // peers that one rank talks to
};

/// Runs all ranks' schedules of one request on a clock of its own. Every rank has one way out, one
/// way in and one processor, and each serves one piece at a time, in the order in which they come;
/// nothing else is shared. Fails with limit_exceeded when there are more than `max_pieces`, and
/// with invalid_argument for schedules that do not fit together (the checker says more).
Result<Timing> run_on_clock(std::span<const Schedule> ranks, std::uint64_t element_bytes,
                            const Rates& rates, std::uint64_t max_pieces = 1U << 25U);

}  // namespace nexar::schedule
