#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "port/dial.hpp"
#include "wire/limits.hpp"

namespace nexar::quic {

using port::Protection;

/// The numbers of a link. link_settings.hpp fills in what users may set; link_bench shows what the
/// others do.
struct LinkOptions {
    Protection protection = Protection::full;

    Duration handshake_timeout = std::chrono::seconds(10);  // of a dialer
    Duration idle_timeout = std::chrono::seconds(30);
    Duration keep_alive = std::chrono::seconds(3);
    Duration linger = std::chrono::seconds(2);  // of close(), or three probe timeouts if longer

    /// Bulk bytes that are written before arrived packets are looked at again, beside messages of
    /// the lanes and when there have been none for a while.
    std::size_t bulk_per_turn = std::size_t{64} * 1024;
    std::size_t bulk_per_quiet_turn = std::size_t{128} * 1024;
    /// Bytes on the way beyond which bulk waits when the round trip shows that they only queue up.
    std::size_t bulk_in_flight = std::size_t{256} * 1024;
    /// Connection credit that only the control lane may use.
    std::size_t control_reserve = std::size_t{64} * 1024;

    /// Bytes of a payload stream that arrive before open_window(): exactly what the engine takes
    /// ahead of the match, so that a longer message is not delivered before it is matched.
    std::uint64_t first_window = wire::kBulkHeadBytes + wire::kBulkPreambleBytes;
    /// Window of a payload stream after open_window(), at first and at most.
    std::uint64_t bulk_window = std::uint64_t{1024} * 1024;
    std::uint64_t bulk_window_max = std::uint64_t{8} * 1024 * 1024;
    std::uint64_t lane_window = std::uint64_t{1024} * 1024;
    std::uint64_t connection_window = std::uint64_t{16} * 1024 * 1024;

    /// Bytes of a peer that wait here for a sink. Beyond them the peer gets no connection credit.
    std::size_t park_budget = std::size_t{32} * 1024 * 1024;
    /// Bytes that one lane holds, unsent and unacknowledged.
    std::size_t lane_queue = std::size_t{4} * 1024 * 1024;
    /// Payload streams that a peer may have open.
    std::uint64_t max_streams = 256;
    std::size_t datagram_queue = 64;

    /// The largest UDP payload to try; the path may allow less.
    std::size_t largest_datagram = 65000;

    // What a peer may do without moving data, per second and at once; beyond, it is cut off.
    double idle_packets_per_second = 10'000;
    double idle_packets_burst = 100'000;
    double resets_per_second = 1'000;
    double resets_burst = 10'000;
};

}  // namespace nexar::quic
