#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "base/address.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"

/// Reads and writes packets without a connection: to find the connection of a packet, and to answer
/// strangers without keeping state about them.
namespace nexar::quic {

/// A connection id that this side issued. All have the same length, because short headers do not
/// carry it.
struct LocalCid {
    static constexpr std::size_t kBytes = 8;
    std::array<std::uint8_t, kBytes> bytes{};

    std::uint64_t number() const noexcept {
        std::uint64_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        return number;
    }
    friend bool operator==(const LocalCid&, const LocalCid&) noexcept = default;
};

/// A connection id of any side: up to 20 bytes.
struct AnyCid {
    static constexpr std::size_t kMaxBytes = 20;
    std::array<std::uint8_t, kMaxBytes> bytes{};
    std::size_t size = 0;

    AnyCid() noexcept = default;
    explicit AnyCid(std::span<const std::uint8_t> from) noexcept;
    explicit AnyCid(const LocalCid& cid) noexcept : AnyCid(std::span(cid.bytes)) {}

    std::span<const std::uint8_t> span() const noexcept { return {bytes.data(), size}; }
    friend bool operator==(const AnyCid&, const AnyCid&) noexcept = default;
};

using ResetToken = std::array<std::uint8_t, 16>;

/// The connection that a packet is for.
struct PacketTarget {
    enum class Kind : std::uint8_t {
        short_header,
        long_header,
        other_version,  // long, of an unknown QUIC version
    };
    Kind kind{};
    std::uint32_t version = 0;
    AnyCid to{};
    AnyCid from{};  // long headers only
};

/// Returns nullopt if `packet` is not a QUIC packet.
std::optional<PacketTarget> decode_target(std::span<const std::byte> packet) noexcept;

/// The first packet of a client, as far as it can be read without keys.
struct ClientHelloPacket {
    std::uint32_t version = 0;
    AnyCid to{};
    AnyCid from{};
    std::span<const std::byte> token{};  // points into the packet
    /// After a Retry: the id that the client's very first packet went to.
    std::optional<AnyCid> before_retry{};
};

/// Returns nullopt if the packet cannot begin a connection.
std::optional<ClientHelloPacket> decode_client_hello(std::span<const std::byte> packet) noexcept;

/// Key material for answers to strangers; 32 random bytes.
using EndpointSecret = Secret;

/// The address and ids that a Retry token vouches for.
struct RetryQuestion {
    Address remote{};
    TimePoint now{};
};

/// Each of these writes one packet and returns its size, or 0 if `out` is too small.
std::size_t write_version_negotiation(std::span<std::byte> out, const PacketTarget& to,
                                      std::uint8_t random) noexcept;
std::size_t write_retry(std::span<std::byte> out, const ClientHelloPacket& to, const LocalCid& from,
                        const EndpointSecret& secret, const RetryQuestion& question) noexcept;
std::size_t write_stateless_reset(std::span<std::byte> out, const ResetToken& token,
                                  std::span<const std::uint8_t> random) noexcept;

/// True if the token of `hello` is from write_retry() for the same address and at most 10 s old;
/// then fills hello.before_retry.
bool verify_retry_token(ClientHelloPacket& hello, const EndpointSecret& secret,
                        const RetryQuestion& question) noexcept;

ResetToken make_reset_token(const EndpointSecret& secret, const LocalCid& cid) noexcept;

/// True if a client's token has the form of a Retry token.
bool has_retry_token(const ClientHelloPacket& hello) noexcept;

}  // namespace nexar::quic

template <>
struct std::hash<nexar::quic::LocalCid> {
    // Random bytes that this side chose.
    std::size_t operator()(const nexar::quic::LocalCid& cid) const noexcept { return cid.number(); }
};
