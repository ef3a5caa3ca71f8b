#pragma once

#include <cstdint>

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

/// The rates that explain these times. If measurement noise makes the times contradictory, returns
/// rates that come close; no rate is negative, and every byte takes some time.
Rates fitted(const LinkTimes& times) noexcept;

}  // namespace nexar::schedule
