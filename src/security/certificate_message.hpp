#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "security/refusal.hpp"

namespace nexar::security {

/// The most certificates that a peer may show: its own and the cluster CA's.
inline constexpr std::size_t kMaxShownCertificates = 2;

/// The most bytes of handshake that a peer may send, all its messages together.
inline constexpr std::size_t kMaxHandshakeBytes = std::size_t{16} * 1024;

/// The certificates that a peer showed, as DER inside the message that they were read from.
struct ShownCertificates {
    std::array<std::span<const std::byte>, kMaxShownCertificates> der{};
    std::size_t count = 0;  // at least 1

    std::span<const std::byte> own() const noexcept { return der[0]; }
};

/// Reads the body of a Certificate message of TLS 1.3 (RFC 8446 section 4.4.2) and refuses what is
/// above the limits: of the message, of certificates, and of names in the first of them. Takes no
/// memory for what it reads.
Checked<ShownCertificates> read_certificate_message(std::span<const std::byte> body);

}  // namespace nexar::security
