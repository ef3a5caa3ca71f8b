#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "link/quic/packet_cipher.hpp"

/// Derives the keys of RFC 9001 section 5 from the secrets of TLS.
namespace nexar::quic {

/// A secret of TLS 1.3, as long as the hash of its suite: SHA-256 or SHA-384. Wiped when destroyed.
struct TrafficSecret {
    std::array<std::uint8_t, 48> bytes{};
    std::size_t size = 0;

    TrafficSecret() noexcept = default;
    explicit TrafficSecret(std::span<const std::uint8_t> secret) noexcept;
    TrafficSecret(const TrafficSecret&) noexcept = default;
    TrafficSecret& operator=(const TrafficSecret&) noexcept = default;
    ~TrafficSecret();

    std::span<const std::uint8_t> span() const noexcept { return {bytes.data(), size}; }
};

/// The keys of one direction at one level. Wiped when destroyed.
struct PacketKeys {
    std::array<std::uint8_t, kMaxKeyBytes> key{};
    std::array<std::uint8_t, kNonceBytes> iv{};
    std::array<std::uint8_t, kMaxKeyBytes> header_key{};
    std::size_t key_size = 0;

    PacketKeys() noexcept = default;
    PacketKeys(const PacketKeys&) noexcept = default;
    PacketKeys& operator=(const PacketKeys&) noexcept = default;
    ~PacketKeys();

    std::span<const std::uint8_t> key_span() const noexcept { return {key.data(), key_size}; }
    std::span<const std::uint8_t> header_key_span() const noexcept {
        return {header_key.data(), key_size};
    }
};

PacketKeys derive_keys(CipherSuite suite, const TrafficSecret& secret) noexcept;

/// The secret after a key update, RFC 9001 6.1.
TrafficSecret next_secret(const TrafficSecret& secret) noexcept;

struct InitialSecrets {
    TrafficSecret client{};
    TrafficSecret server{};
};

/// Everyone who sees the first packet can derive them: they detect accidents, not attacks.
InitialSecrets initial_secrets(std::span<const std::uint8_t> connection_id) noexcept;

/// The key with which a Retry packet is checked, RFC 9001 5.8.
std::span<const std::uint8_t, 16> retry_key() noexcept;

}  // namespace nexar::quic
