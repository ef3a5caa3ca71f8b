#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::sim {

/// Which way a partition cuts.
enum class Way : std::uint8_t { both, one };

/// What one direction of a simulated link is like. Probabilities are per piece or per datagram.
struct LinkWeather {
    Duration delay = std::chrono::microseconds(100);
    /// Up to this is added to the delay of each piece, drawn anew for each: lanes, streams and
    /// datagrams overtake each other. The bytes of one lane or stream never do.
    Duration jitter{};
    std::uint64_t bytes_per_second = 0;  // 0: no limit
    /// Bytes of a lane or stream travel in pieces no larger than this, at least 1.
    std::size_t largest_piece = std::size_t{64} * 1024;
    /// How often a piece is cut short, at a random place: 1 byte is as likely as any other length.
    double cuts = 0;
    double datagram_loss = 0;
    double datagram_duplicate = 0;
    /// How often a datagram takes up to five times as long as others.
    double datagram_reorder = 0;
};

/// What happens to the datagrams of a DatagramNet on their way. Probabilities are per datagram.
struct DatagramWeather {
    Duration delay = std::chrono::microseconds(100);
    Duration jitter{};  // up to this is added, each time anew: datagrams overtake each other
    double loss = 0;
    double duplicate = 0;
    double corrupt = 0;       // one bit is flipped
    std::size_t mtu = 65535;  // larger datagrams vanish
    bool cut = false;         // all vanish
};

}  // namespace nexar::sim
