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

/// What can be read and written of packets without a connection: to find the connection that a
/// packet belongs to, and to answer strangers without keeping anything about them.
namespace nexar::quic {

/// A connection id that this side gave out. All have one length, so that packets with a short
/// header, which do not say it, can be read.
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

/// Whom a packet is for.
struct PacketTarget {
    enum class Kind : std::uint8_t {
        short_header,
        long_header,
        other_version,  // long, of a QUIC version that we do not speak
    };
    Kind kind{};
    std::uint32_t version = 0;
    AnyCid to{};
    AnyCid from{};  // long headers only
};

/// None: not a QUIC packet.
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

/// None: no packet that may begin a connection.
std::optional<ClientHelloPacket> decode_client_hello(std::span<const std::byte> packet) noexcept;

/// Key material of answers to strangers; 32 random bytes.
using EndpointSecret = Secret;

/// The addresses and ids that a Retry token vouches for.
struct RetryQuestion {
    Address remote{};
    TimePoint now{};
};

/// All write one packet and return its size; 0 when there is no room.
std::size_t write_version_negotiation(std::span<std::byte> out, const PacketTarget& to,
                                      std::uint8_t random) noexcept;
std::size_t write_retry(std::span<std::byte> out, const ClientHelloPacket& to, const LocalCid& from,
                        const EndpointSecret& secret, const RetryQuestion& question) noexcept;
std::size_t write_stateless_reset(std::span<std::byte> out, const ResetToken& token,
                                  std::span<const std::uint8_t> random) noexcept;

/// Whether the token of `hello` is from write_retry() for the same address, not older than 10 s;
/// then fills hello.before_retry.
bool verify_retry_token(ClientHelloPacket& hello, const EndpointSecret& secret,
                        const RetryQuestion& question) noexcept;

ResetToken make_reset_token(const EndpointSecret& secret, const LocalCid& cid) noexcept;

/// Whether a client's token looks like one of a Retry at all.
bool has_retry_token(const ClientHelloPacket& hello) noexcept;

}  // namespace nexar::quic

template <>
struct std::hash<nexar::quic::LocalCid> {
    // Random bytes that only this side chose.
    std::size_t operator()(const nexar::quic::LocalCid& cid) const noexcept { return cid.number(); }
};
