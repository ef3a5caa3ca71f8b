#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/sim/weather.hpp"
#include "wire/limits.hpp"

namespace nexar::sim {

/// What a piece takes from the byte budget of a turn, in addition to its own bytes.
inline constexpr std::size_t kPieceOverhead = 64;

/// The numbers of simulated links; those that QUIC links have too are the same there by default.
struct FabricOptions {
    LinkWeather weather{};

    Duration handshake_timeout = std::chrono::seconds(10);  // of a dialer
    Duration half_open_life = std::chrono::seconds(3);      // of whoever is dialed
    Duration idle_timeout = std::chrono::seconds(30);
    Duration linger = std::chrono::seconds(2);  // of close()

    /// Bytes of a payload stream that arrive before open_window(), and its window afterwards.
    std::uint64_t first_window = wire::kBulkHeadBytes + wire::kBulkPreambleBytes;
    std::uint64_t bulk_window = std::uint64_t{1024} * 1024;
    std::uint64_t lane_window = std::uint64_t{1024} * 1024;
    /// Bytes that one lane holds, unsent and unacknowledged.
    std::size_t lane_queue = std::size_t{4} * 1024 * 1024;
    /// Payload streams that a peer may have open.
    std::uint64_t max_streams = 256;
    std::size_t datagram_queue = 64;
    std::size_t max_datagram = 1200;

    /// Reads the memory of sources again before it is released, and asserts that it is as it was.
    bool check_sources = true;
    /// How often bytes are placed directly where a sink offers memory, instead of written.
    double direct_placement = 0.5;
};

}  // namespace nexar::sim
