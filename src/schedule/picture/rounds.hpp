#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/message_ends.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// The round of every step: the number of messages on the longest chain of dependencies that ends
/// with the step. A local step belongs to the round of the last message that it waits for.
///
/// The schedules must belong to one collective, in the order of ranks, and outlive this object.
class Rounds {
public:
    explicit Rounds(std::span<const Schedule> ranks);

    std::uint32_t of(std::size_t rank, std::size_t step) const { return rounds_[rank][step]; }
    std::uint32_t last() const noexcept;

    /// The step of the peer that is the other end of this message.
    std::uint32_t other_end(std::size_t rank, std::size_t step) const {
        return ends_.other[rank][step];
    }

private:
    bool advance();

    std::span<const Schedule> ranks_;
    MessageEnds ends_;
    std::vector<std::vector<std::uint32_t>> rounds_;
};

}  // namespace nexar::schedule
