#pragma once

#include <cstdint>
#include <functional>
#include <nexar/result.hpp>
#include <span>

#include "schedule/links.hpp"
#include "schedule/rates.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// The cost of a collective on a simulated fabric.
struct Timing {
    double seconds = 0;                  // until the last rank has finished
    std::uint64_t most_bytes_sent = 0;   // by one rank
    std::uint64_t bytes_sent = 0;        // by all
    std::uint64_t most_messages = 0;     // sent by one rank
    std::uint32_t most_connections = 0;  // peers of one rank
    std::uint64_t most_relayed = 0;      // bytes that one rank sends on for others
};

/// In a sparse topology: the rank to which `at` sends a message for `to`, which is another rank.
/// Must lead to `to`.
using NextHop = std::function<std::uint32_t(std::uint32_t at, std::uint32_t to)>;

/// What the simulated messages cost.
struct Fabric {
    Rates rates{};       // between hosts
    Rates host_rates{};  // within a host
    Links links{};
    NextHop next_hop{};  // none: every pair of ranks has a link
};

/// Simulates the schedules of all ranks for one request on a virtual clock. Every rank has one
/// sender, one receiver and one processor; each handles one piece at a time, in the order of
/// arrival. Ranks of a host share its network (Rates::shared_byte), and nothing else. A relay
/// receives and sends messages of others as if they were its own, but passes the first bytes on at
/// once. Fails with limit_exceeded if there are more than `max_pieces`, and with invalid_argument
/// if the schedules do not belong together (the checker says more).
Result<Timing> run_on_clock(std::span<const Schedule> ranks, std::uint64_t element_bytes,
                            const Fabric& fabric, std::uint64_t max_pieces = 1U << 25U);

/// The same with one rank on each host.
inline Result<Timing> run_on_clock(std::span<const Schedule> ranks, std::uint64_t element_bytes,
                                   const Rates& rates, std::uint64_t max_pieces = 1U << 25U) {
    return run_on_clock(ranks, element_bytes, Fabric{.rates = rates}, max_pieces);
}

}  // namespace nexar::schedule
