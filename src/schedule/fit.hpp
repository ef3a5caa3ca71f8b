#pragma once

#include <cstdint>

#include "schedule/memory_cost.hpp"
#include "schedule/rates.hpp"

namespace nexar::schedule {

/// Measurements from which fitted() derives rates: seconds between two ranks with nothing else on
/// the fabric, and seconds per byte of one rank's own memory.
struct LinkTimes {
    // Both are larger than what a sender handles before its receiver begins, and so different that
    // their times differ mostly by the bytes.
    static constexpr std::uint64_t kMedium = 1U << 20U;
    static constexpr std::uint64_t kLarge = 1U << 22U;

    double small = 0;        // a message of few bytes, until it has arrived
    double one_of_many = 0;  // the same per message when many are sent at once
    double medium = 0;       // a message of kMedium bytes, until it has arrived
    double large = 0;        // a message of kLarge bytes
    double both_medium = 0;  // the same when both ranks send at the same time
    double both_large = 0;
    double reduce_byte = 0;
    double copy_byte = 0;
};

/// Measurements of collectives in the memory that ranks of a host share, in seconds.
struct MemoryTimes {
    std::uint32_t ranks = 2;
    double pair_barrier = 0;  // of two ranks
    double barrier = 0;       // of `ranks` ranks
    double medium = 0;        // a broadcast of LinkTimes::kMedium bytes, and of kLarge bytes
    double large = 0;
    double copy_byte = 0;
};

/// The costs of shared memory that explain these times, without its size; see fitted().
Memory fitted_memory(const MemoryTimes& times) noexcept;

/// The bytes per second that the ranks of a host reach together, if that is a limit: 0 if
/// `together` is about as much as the ranks reach alone, `alone` being the rate of one of them.
double shared_bandwidth(std::uint32_t ranks, double alone, double together) noexcept;

/// The rates that explain these times. If measurement noise makes the times contradictory, returns
/// rates that come close; no rate is negative, and every byte takes some time.
Rates fitted(const LinkTimes& times) noexcept;

}  // namespace nexar::schedule
