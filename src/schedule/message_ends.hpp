#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// The two ends of every message, over all ranks' schedules of one request. A message is identified
/// by sender, receiver and number.
struct MessageEnds {
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    struct Place {
        std::uint32_t rank = 0;
        std::uint32_t step = 0;
    };

    /// other[rank][step]: the step of the peer that is the other end; kNone if the step is not a
    /// message.
    std::vector<std::vector<std::uint32_t>> other;
    /// A message with only one end, or with more than two.
    std::optional<Place> unmatched;
};

/// All peers must be ranks of the world.
MessageEnds match_messages(std::span<const Schedule> ranks);

}  // namespace nexar::schedule
