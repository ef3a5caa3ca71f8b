#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/sim/weather.hpp"
#include "wire/limits.hpp"

namespace nexar::sim {

/// The share of a turn's byte budget that a piece uses in addition to its bytes.
inline constexpr std::size_t kPieceOverhead = 64;

/// Options of simulated links; those that QUIC links share have the same defaults.
struct FabricOptions {
    LinkWeather weather{};

    Duration handshake_timeout = std::chrono::seconds(10);  // of a dialer
    Duration half_open_life = std::chrono::seconds(3);      // of the dialed side
    Duration idle_timeout = std::chrono::seconds(30);
    Duration linger = std::chrono::seconds(2);  // of close()

    /// Bytes of a payload stream that arrive before open_window(), and its window afterwards.
    std::uint64_t first_window = wire::kBulkHeadBytes + wire::kBulkPreambleBytes;
    std::uint64_t bulk_window = std::uint64_t{1024} * 1024;
    std::uint64_t lane_window = std::uint64_t{1024} * 1024;
    /// Unsent and unacknowledged bytes that one lane holds.
    std::size_t lane_queue = std::size_t{4} * 1024 * 1024;
    /// Payload streams that a peer may have open.
    std::uint64_t max_streams = 256;
    std::size_t datagram_queue = 64;
    /// Bytes of relayed datagrams that wait at most; fewer on a slow link, see link::RelayedQueue.
    std::size_t relayed_queue = std::size_t{128} * 1024;
    std::size_t max_datagram = 1200;

    /// A datagram to a killed node is refused by its host: the sender gets PeerRefused after a
    /// round trip of the link, unless the two are partitioned.
    bool killed_nodes_refuse = false;

    /// Reads the memory of sources again before it is released, and asserts that it is unchanged.
    bool check_sources = true;
    /// Probability that bytes are placed directly where a sink offers memory.
    double direct_placement = 0.5;
};

}  // namespace nexar::sim
