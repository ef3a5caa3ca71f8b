#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "security/refusal.hpp"

namespace nexar::security {

/// The maximum number of certificates that a peer may present: its own and that of the cluster CA.
inline constexpr std::size_t kMaxShownCertificates = 2;

/// The maximum number of handshake bytes that a peer may send in all its messages together.
inline constexpr std::size_t kMaxHandshakeBytes = std::size_t{16} * 1024;

/// The certificates that a peer presented, as DER inside the message that contained them.
struct ShownCertificates {
    std::array<std::span<const std::byte>, kMaxShownCertificates> der{};
    std::size_t count = 0;  // at least 1

    std::span<const std::byte> own() const noexcept { return der[0]; }
};

/// Parses the body of a TLS 1.3 Certificate message (RFC 8446 section 4.4.2). Refuses a message
/// that is too large, has too many certificates, or has too many names in the first one. Does not
/// allocate.
Checked<ShownCertificates> read_certificate_message(std::span<const std::byte> body);

}  // namespace nexar::security
