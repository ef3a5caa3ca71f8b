#pragma once

#include <cstdint>

#include "schedule/algorithm.hpp"
#include "schedule/links.hpp"
#include "schedule/rates.hpp"
#include "schedule/stretch.hpp"

namespace nexar::schedule {

/// What the duration of a collective depends on besides the rates; equal on all ranks.
struct Extent {
    std::uint32_t world = 1;
    double bytes = 0;    // of the whole vector: chunks.total(), for all_to_all of one input
    double chunk = 0;    // of the largest chunk
    double segment = 0;  // 0: none
    std::uint32_t window = 4;
    Levels levels{.hosts = 0};             // hosts = 0: every rank has its own host
    const Stretches* stretches = nullptr;  // nullptr: every pair of ranks has a link
};

/// Predicts how long an algorithm takes, in seconds, by a formula: the rounds, messages, bytes and
/// folds on the critical path; or, where ranks share processors, the work of all ranks divided by
/// the processors, plus the time that ranks wait for their turn. run_on_clock() simulates the
/// schedules and gives similar times (cost_test.cpp bounds the difference), but its running time
/// grows with the world.
///
/// Without direct links between all pairs, messages cross several links, see Rates::over(): on the
/// way each of them takes the longest time that messages of this algorithm take, and while all
/// ranks send, they also relay. Algorithms that need a given tree take forever unless
/// Extent::stretches has one.
///
/// `rates` are those of links between hosts, `host_rates` those within a host. An algorithm of one
/// level is assumed to wait for a link between hosts in every round, except in those that
/// Extent::levels says are within hosts for all ranks.
double predicted_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                         const Rates& host_rates);

/// The same where all links are equal.
inline double predicted_seconds(const Algorithm& algorithm, const Extent& extent,
                                const Rates& rates) {
    return predicted_seconds(algorithm, extent, rates, rates);
}

}  // namespace nexar::schedule
