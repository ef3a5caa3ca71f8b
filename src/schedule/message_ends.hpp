#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// Which send and which receive are the two ends of one message, over all ranks' schedules of one
/// request: found by (sender, receiver, number).
struct MessageEnds {
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    struct Place {
        std::uint32_t rank = 0;
        std::uint32_t step = 0;
    };

    /// other[rank][step]: the step of its peer that is the other end; kNone: no message.
    std::vector<std::vector<std::uint32_t>> other;
    /// A message that has one end only, or more than two.
    std::optional<Place> unmatched;
};

/// Peers must be ranks.
MessageEnds match_messages(std::span<const Schedule> ranks);

}  // namespace nexar::schedule
