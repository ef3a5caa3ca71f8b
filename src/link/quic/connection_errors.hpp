#pragma once

#include <cstdint>
#include <string_view>

namespace nexar::quic {

/// The protocols that a handshake agrees on. They differ, so that one side alone cannot give up
/// protection.
inline constexpr std::string_view kAlpn = "nexar/1";
inline constexpr std::string_view kAlpnUnprotected = "nexar/1 unprotected";
/// Of those who have no certificate yet, with a seed; always protected.
inline constexpr std::string_view kAlpnJoin = "nexar-join/1";

/// Application error codes of CONNECTION_CLOSE; the words beside them are for people.
inline constexpr std::uint64_t kCloseDone = 0;
inline constexpr std::uint64_t kCloseFailed = 1;

/// Application error code of RESET_STREAM and STOP_SENDING.
inline constexpr std::uint64_t kStreamGivenUp = 1;

}  // namespace nexar::quic
