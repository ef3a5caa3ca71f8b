#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::sim {

/// The directions that a partition cuts.
enum class Way : std::uint8_t { both, one };

/// The conditions on one direction of a simulated link. Probabilities are per piece or datagram.
struct LinkWeather {
    Duration delay = std::chrono::microseconds(100);
    /// A random time of up to this is added to the delay of each piece, so lanes, streams and
    /// datagrams overtake each other. The bytes of one lane or stream never overtake each other.
    Duration jitter{};
    std::uint64_t bytes_per_second = 0;  // 0: no limit
    /// Bytes of a lane or stream travel in pieces no larger than this, at least 1.
    std::size_t largest_piece = std::size_t{64} * 1024;
    /// Probability that a piece is cut at a random place; every length is equally likely.
    double cuts = 0;
    double datagram_loss = 0;
    double datagram_duplicate = 0;
    /// Probability that a datagram takes up to five times as long as others.
    double datagram_reorder = 0;
};

/// The conditions on the paths of a DatagramNet. Probabilities are per datagram.
struct DatagramWeather {
    Duration delay = std::chrono::microseconds(100);
    Duration jitter{};  // a random time up to this is added, so datagrams are reordered
    double loss = 0;
    double duplicate = 0;
    double corrupt = 0;       // one bit is flipped
    std::size_t mtu = 65535;  // larger datagrams are lost
    bool cut = false;         // all are lost
};

}  // namespace nexar::sim
