#pragma once

#include <cstdint>
#include <vector>

#include "schedule/algorithm.hpp"

/// Parts of the algorithms in memory, see Medium.
namespace nexar::schedule {

/// The sizes that the room in a segment follows from; equal on all ranks. In elements.
struct MemoryUse {
    std::uint32_t world = 1;
    std::uint64_t count = 0;    // of the whole vector
    std::uint64_t largest = 0;  // of the largest chunk
    std::uint64_t segment = 0;  // 0: one round
};

/// Elements of the longest slice that a rank puts into one place, in all rounds together.
std::uint64_t longest_put(const Traits& traits, const MemoryUse& use) noexcept;

/// Elements of a segment that one round uses: places are below it.
std::uint64_t memory_extent(const Traits& traits, const MemoryUse& use) noexcept;

/// The number of rounds, at least 1.
std::uint64_t memory_rounds(const Traits& traits, const MemoryUse& use) noexcept;

/// The phase of each step in a round. A rank runs a round in phases, and the steps of a phase in
/// order: phase s has the sends of stage s, and after them the rank publishes the stage; phase s +
/// 1 has the receives of stage s. Other steps run in the phase of the last step that they wait for,
/// but not before the rank has published stage 0.
std::vector<std::uint32_t> phases_of(const Schedule& schedule);

/// The place of chunk i when each chunk has its own.
std::uint64_t place_of(std::uint32_t i, const Request& request);

}  // namespace nexar::schedule
