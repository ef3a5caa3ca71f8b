#pragma once

#include <cstdint>
#include <string_view>

namespace nexar::quic {

/// The ALPN protocols of a handshake. They differ, so that one side alone cannot turn protection
/// off.
inline constexpr std::string_view kAlpn = "nexar/1";
inline constexpr std::string_view kAlpnUnprotected = "nexar/1 unprotected";
/// Between a joiner, which has no certificate yet, and a seed; always protected.
inline constexpr std::string_view kAlpnJoin = "nexar-join/1";

/// Application error codes of CONNECTION_CLOSE; the reason text is for people.
inline constexpr std::uint64_t kCloseDone = 0;
inline constexpr std::uint64_t kCloseFailed = 1;

/// Application error code of RESET_STREAM and STOP_SENDING.
inline constexpr std::uint64_t kStreamGivenUp = 1;

}  // namespace nexar::quic
