#pragma once

#include <cstdint>

#include "schedule/cost.hpp"

namespace nexar::schedule {

/// The memory that the ranks of a communicator share, and its costs in seconds. Each rank has a
/// segment, with slots for operations of one round and buffers for the rounds of longer ones.
struct Memory {
    std::uint64_t slot_bytes = 0;    // 0: the ranks share no memory
    std::uint64_t buffer_bytes = 0;  // what a rank can put in one round
    double latency = 0.25e-6;        // from a publish until the other ranks see it
    double per_peer = 40e-9;         // to look at one more rank
    double put_byte = 1.0 / 12e9;    // to copy into the own segment
    double read_byte = 1.0 / 6e9;    // to copy or fold from the segment of another rank

    bool shared() const noexcept { return slot_bytes != 0; }

    friend bool operator==(const Memory&, const Memory&) = default;
};

/// The most rounds that an operation of this many stages can have.
constexpr std::uint64_t most_rounds(std::uint32_t stages) noexcept {
    return 16'000 / stages;
}

/// Predicts the seconds of an algorithm in memory, see predicted_seconds().
double memory_seconds(const Algorithm& algorithm, const Extent& extent, const Memory& memory);

/// How an algorithm in memory divides its vector into rounds.
struct MemorySegment {
    bool fits = false;          // false: too many ranks or elements for these buffers
    std::uint64_t segment = 0;  // elements per round; 0: one round, in a slot
};

/// `most_bytes`: 0, or the most bytes of a piece that the settings allow.
MemorySegment memory_segment(const Traits& traits, const Extent& extent,
                             std::uint32_t element_bytes, const Memory& memory,
                             std::uint64_t most_bytes);

}  // namespace nexar::schedule
