#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/communicator.hpp>
#include <vector>

#include "base/time.hpp"

/// The messages that carry the application's state to members that join, see node_state.cpp.
namespace nexar::detail {

/// The tags of the messages that carry the application's state.
inline constexpr std::uint64_t kStateSizeTag = 0;
inline constexpr std::uint64_t kStatePartTag = 1;

/// The largest message with a piece of the state. A receiver takes memory for one piece at a time,
/// so that nobody makes it take memory for bytes that never come.
inline constexpr std::size_t kStatePieceBytes = std::size_t{16} << 20U;

/// What a sender says of the state before it sends its part.
struct StateHeader {
    std::uint64_t bytes = 0;
    std::uint64_t digest = 0;
};

/// The state that the first `senders` ranks of `world` send to this one, which has joined. Throws
/// Errc::timed_out if it is not complete within `timeout`, and Errc::invalid_argument if the
/// senders have different states.
std::vector<std::byte> receive_state(const Communicator& world, std::size_t senders,
                                     Duration timeout);

}  // namespace nexar::detail
