#pragma once

#include <ngtcp2/ngtcp2.h>

#include <cstddef>
#include <span>

#include "link/quic/connection.hpp"

namespace nexar::quic {

/// The progress of one call of write(), and the packet being filled.
struct Connection::Turn {
    // What the loop that fills a packet does next, unless the packet is complete.
    static constexpr std::ptrdiff_t kGoOn = -1;
    static constexpr std::ptrdiff_t kFailed = -2;

    ngtcp2_tstamp stamp = 0;
    std::span<std::byte> room{};
    ngtcp2_path_storage path{};
    ngtcp2_pkt_info packet{};
    std::size_t bulk_left = 0;     // of payload and relayed datagrams
    std::size_t packet_bytes = 0;  // the size that the path carries now
    bool packet_open = false;      // a packet was begun and is not finished
    bool has_lane = false;         // it carries messages of a lane
    bool has_bulk = false;         // it carries payload or relayed datagrams
    std::size_t written = 0;

    /// False when less than half of a packet may be filled, so that the last one is not tiny.
    bool may_write_bulk() const noexcept { return bulk_left >= packet_bytes / 2; }
};

}  // namespace nexar::quic
