#pragma once

#include <cstddef>
#include <cstdint>

/// The numbers that bound every byte sequence a peer can send. docs/protocol.md lists them, and a
/// test compares the two.
namespace nexar::wire {

/// The version that this build writes and the only one that it reads.
inline constexpr std::uint8_t kProtocolVersion = 1;

inline constexpr std::size_t kPreambleBytes = 8;
inline constexpr std::size_t kBulkPreambleBytes = 24;
inline constexpr std::size_t kFrameHeaderBytes = 8;

/// A message header with its frame header; fixed, so that it can be written into a buffer on the
/// stack.
inline constexpr std::size_t kMessageHeaderFrameBytes = 42;

/// The same for the header of a message of a collective.
inline constexpr std::size_t kCollectiveHeaderFrameBytes = 55;

/// The frame of a request without optional fields is at most so long, and that of a response that
/// went well or of a cancel, so that they can be written into a buffer on the stack.
inline constexpr std::size_t kMaxCallFrameBytes = 101;

/// Any count of bytes: message sizes, windows, credits. So low that 65 535 of them add up without
/// overflow in 64 bits.
inline constexpr std::uint64_t kMaxByteCount = std::uint64_t{1} << 48;

/// Payload that may follow its header on the eager lane, or on the rpc lane.
inline constexpr std::uint64_t kMaxEagerBytes = std::uint64_t{1} << 16;

/// How much of a payload on a stream of its own may travel before its receive or its collective was
/// called.
inline constexpr std::uint64_t kBulkHeadBytes = std::uint64_t{1} << 16;

inline constexpr std::uint32_t kMaxWorldSize = std::uint32_t{1} << 20;

inline constexpr std::size_t kMaxSoftwareBytes = 128;
inline constexpr std::size_t kMaxReportTextBytes = 1024;
inline constexpr std::size_t kMaxLinkBytes = 256;
inline constexpr std::size_t kMaxFunctionNameBytes = 64;

inline constexpr std::size_t kMaxSettings = 256;
inline constexpr std::size_t kMaxSettingNameBytes = 64;
inline constexpr std::size_t kMaxSettingValueBytes = 256;

inline constexpr std::size_t kMaxSettingOriginBytes = 256;

// Between a seed and who joins.
inline constexpr std::size_t kMaxSigningRequestBytes = 1024;
inline constexpr std::size_t kMaxCertificateBytes = 4096;
inline constexpr std::size_t kMaxHostBytes = 64;
inline constexpr std::size_t kMaxAddressBytes = 56;
inline constexpr std::size_t kMaxAddresses = 16;
inline constexpr std::size_t kMaxViewMembers = 16384;

// In files of a seed.
inline constexpr std::size_t kMaxStoredTokens = 16384;

}  // namespace nexar::wire
