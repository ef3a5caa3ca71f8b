#pragma once

#include <cstddef>
#include <cstdint>

/// The limits on every byte sequence that a peer can send. docs/protocol.md lists them, and a test
/// compares the two.
namespace nexar::wire {

/// The version that this build writes, and the only one that it reads.
inline constexpr std::uint8_t kProtocolVersion = 1;

inline constexpr std::size_t kPreambleBytes = 8;
inline constexpr std::size_t kBulkPreambleBytes = 24;
inline constexpr std::size_t kFrameHeaderBytes = 8;

/// A message header with its frame header. Fixed, so that it can be encoded into a buffer on the
/// stack.
inline constexpr std::size_t kMessageHeaderFrameBytes = 42;

/// The same for the header of a collective message.
inline constexpr std::size_t kCollectiveHeaderFrameBytes = 55;

/// Maximum size of the frame of a request without optional fields, a successful response or a
/// cancel, so that they can be encoded into a buffer on the stack.
inline constexpr std::size_t kMaxCallFrameBytes = 101;

/// Limit of every byte count: message sizes, windows, credits. Low enough that the sum of 65 535 of
/// them does not overflow 64 bits.
inline constexpr std::uint64_t kMaxByteCount = std::uint64_t{1} << 48;

/// Largest payload that may follow its header on the eager or rpc lane.
inline constexpr std::uint64_t kMaxEagerBytes = std::uint64_t{1} << 16;

/// How much of a payload on its own stream may be sent before the receiver has called the matching
/// receive or collective.
inline constexpr std::uint64_t kBulkHeadBytes = std::uint64_t{1} << 16;

inline constexpr std::uint32_t kMaxWorldSize = std::uint32_t{1} << 20;

/// Ranks in a view are never given twice, so they exceed the size of the world.
inline constexpr std::uint32_t kMaxRank = 0x7fff'fffe;

inline constexpr std::size_t kMaxSoftwareBytes = 128;
inline constexpr std::size_t kMaxReportTextBytes = 1024;
inline constexpr std::size_t kMaxLinkBytes = 256;
inline constexpr std::size_t kMaxLinkKindBytes = 16;
inline constexpr std::size_t kMaxFunctionNameBytes = 64;

inline constexpr std::size_t kMaxSettings = 256;
inline constexpr std::size_t kMaxSettingNameBytes = 64;
inline constexpr std::size_t kMaxSettingValueBytes = 256;

inline constexpr std::size_t kMaxSettingOriginBytes = 256;

// Messages between a seed and joining nodes.
inline constexpr std::size_t kMaxSigningRequestBytes = 1024;
inline constexpr std::size_t kMaxCertificateBytes = 4096;
inline constexpr std::size_t kMaxHostBytes = 64;
inline constexpr std::size_t kMaxAddressBytes = 56;
inline constexpr std::size_t kMaxAddresses = 16;
inline constexpr std::size_t kMaxViewMembers = 16384;

// Messages that reach members that are not connected.
inline constexpr std::size_t kMaxPacketBytes = 65535;
inline constexpr std::uint8_t kMaxHops = 64;
inline constexpr std::size_t kMaxDownLinks = 64;

/// An envelope with its frame header, without the packet.
inline constexpr std::size_t kEnvelopeBytes = 24;

// Files of a seed.
inline constexpr std::size_t kMaxStoredTokens = 16384;

}  // namespace nexar::wire
