#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "wire/limits.hpp"

namespace nexar::shm {

/// The options of shared-memory links. open_carrier.cpp fills in those that users may set;
/// shm_bench measures the others. Both sides of a link must have the same windows and limits.
struct LinkOptions {
    /// Bytes of the ring of one direction: a power of two, at least 64 KiB.
    std::size_t ring_bytes = std::size_t{512} * 1024;
    /// Bytes of a payload stream in one record.
    std::size_t chunk_bytes = std::size_t{32} * 1024;
    /// The part of a ring that payload streams leave to the lanes, as a divisor.
    std::size_t lane_share = 8;

    std::uint64_t first_link = 1;  // its number

    Duration handshake_timeout = std::chrono::seconds(2);
    Duration linger = std::chrono::seconds(2);  // of close()
    /// How often a driver that never sleeps looks at the sockets: in time, and in polls.
    Duration socket_interval = std::chrono::milliseconds(2);
    std::uint32_t socket_polls = 4096;
    /// How often a driver looks whether the processes of silent peers are being killed.
    Duration life_interval = std::chrono::milliseconds(25);
    /// Connections that have not yet presented an invitation; the oldest makes room for a new one.
    std::size_t max_half_open = 32;

    /// Bytes of a payload stream that arrive before open_window(), and its window afterwards: the
    /// larger one while all windows together are below the budget, the smaller one beyond it.
    std::uint64_t first_window = wire::kBulkHeadBytes + wire::kBulkPreambleBytes;
    std::uint64_t bulk_window = std::uint64_t{1024} * 1024;
    std::uint64_t least_window = std::uint64_t{64} * 1024;
    std::uint64_t window_budget = std::uint64_t{24} * 1024 * 1024;
    std::uint64_t lane_window = std::uint64_t{1024} * 1024;
    /// Bytes of one lane that wait for room in the ring or in the peer's window.
    std::size_t lane_queue = std::size_t{4} * 1024 * 1024;
    /// Payload streams that a peer may have open.
    std::uint64_t max_streams = 256;
    std::size_t max_datagram = 1200;

    /// Memory that one peer may share with this node, and this node with one peer: pieces, and
    /// bytes in all.
    std::size_t max_shares = 64;
    std::uint64_t max_shared_bytes = std::uint64_t{4} * 1024 * 1024 * 1024;
};

}  // namespace nexar::shm
