#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.hpp"
#include "engine/collective.hpp"
#include "port/shared_memory.hpp"

namespace nexar::engine {

/// How a communicator gets memory that its ranks share. Before its first collective every rank
/// shares a segment with every other rank; then all ranks agree, by a collective that uses up the
/// number before the first call, whether each of them has all segments. Calls wait for the outcome.
struct MemorySetup {
    enum class State : std::uint8_t {
        wanted,     // no collective was called yet
        exchanges,  // waits for the segments of other ranks
        agrees,
    };

    State state = State::wanted;
    std::size_t bytes = 0;  // of a segment
    TimePoint until{};      // the latest time for the other segments
    std::shared_ptr<port::SharedMemory> own{};
    CollectiveOperation agreement{};
    std::array<std::byte, 1> agreed{};       // the least of all ranks: 1 if each has all segments
    std::vector<std::uint64_t> held{};       // the numbers of calls that wait
    std::vector<std::uint64_t> cancelled{};  // and of those that were cancelled meanwhile
};

}  // namespace nexar::engine
