#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "port/dial.hpp"
#include "wire/limits.hpp"

namespace nexar::quic {

using port::Protection;

/// The options of a QUIC link. open_carrier.cpp fills in those that users may set; link_bench
/// measures the others.
struct LinkOptions {
    Protection protection = Protection::full;

    Duration handshake_timeout = std::chrono::seconds(10);  // of a dialer
    Duration idle_timeout = std::chrono::seconds(30);
    Duration keep_alive = std::chrono::seconds(3);
    Duration linger = std::chrono::seconds(2);  // of close(), or three probe timeouts if longer

    /// Bulk bytes written before arrived packets are read again: while lanes have messages, and
    /// when they have had none for a while.
    std::size_t bulk_per_turn = std::size_t{64} * 1024;
    std::size_t bulk_per_quiet_turn = std::size_t{128} * 1024;
    /// Bytes in flight beyond which bulk waits if the round trip shows that they only queue up.
    std::size_t bulk_in_flight = std::size_t{256} * 1024;
    /// Connection credit that only the control lane may use.
    std::size_t control_reserve = std::size_t{64} * 1024;

    /// Bytes of a payload stream that arrive before open_window(): exactly what the engine accepts
    /// before the match, so that a longer message is not delivered before it is matched.
    std::uint64_t first_window = wire::kBulkHeadBytes + wire::kBulkPreambleBytes;
    /// Window of a payload stream after open_window(): at first, and at most.
    std::uint64_t bulk_window = std::uint64_t{1024} * 1024;
    std::uint64_t bulk_window_max = std::uint64_t{8} * 1024 * 1024;
    std::uint64_t lane_window = std::uint64_t{1024} * 1024;
    std::uint64_t connection_window = std::uint64_t{16} * 1024 * 1024;

    /// Received bytes of a peer that may wait for a sink. Beyond them the peer gets no connection
    /// credit.
    std::size_t park_budget = std::size_t{32} * 1024 * 1024;
    /// Unsent and unacknowledged bytes that one lane holds.
    std::size_t lane_queue = std::size_t{4} * 1024 * 1024;
    /// Payload streams that a peer may have open.
    std::uint64_t max_streams = 256;
    std::size_t datagram_queue = 64;
    /// Bytes of relayed datagrams that wait at most; fewer on a slow link, see link::RelayedQueue.
    std::size_t relayed_queue = std::size_t{128} * 1024;

    /// The largest UDP payload to try; the path may allow less.
    std::size_t largest_datagram = 65000;

    // Packets without data and resets that a peer may send, per second and in a burst; a peer that
    // exceeds them is cut off.
    double idle_packets_per_second = 10'000;
    double idle_packets_burst = 100'000;
    double resets_per_second = 1'000;
    double resets_burst = 10'000;
};

}  // namespace nexar::quic
