#pragma once

#include <cstdint>

#include "schedule/rates.hpp"

namespace nexar::schedule {

/// What rates are found from: seconds that were measured between two ranks of a fabric, with
/// nothing else on it, and what one rank takes for a byte of its own memory.
struct LinkTimes {
    // Larger than what a sender has worked on before its receiver begins, and apart enough for the
    // difference to be that of the bytes.
    static constexpr std::uint64_t kMedium = 1U << 20U;
    static constexpr std::uint64_t kLarge = 1U << 22U;

    double small = 0;        // a message of few bytes, until it is there
    double one_of_many = 0;  // one such message, of many that are sent at once
    double medium = 0;       // one of kMedium bytes, until it is there
    double large = 0;        // one of kLarge bytes
    double both_medium = 0;  // the same where each sends one to the other
    double both_large = 0;
    double reduce_byte = 0;
    double copy_byte = 0;
};

/// The rates by which messages take these times. Times that no rates explain, as noise may make
/// them, give those that come near; none is below 0, and no byte takes no time.
Rates fitted(const LinkTimes& times) noexcept;

}  // namespace nexar::schedule
