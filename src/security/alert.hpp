#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string_view>

namespace nexar::security {

/// A TLS alert (RFC 8446 section 6). QUIC carries it as the error code 0x100 + number (RFC 9001
/// section 4.8). Any number may arrive; those that nexar sends on purpose have names here.
enum class Alert : std::uint8_t {
    handshake_failure = 40,
    bad_certificate = 42,
    unsupported_certificate = 43,
    certificate_expired = 45,
    unknown_ca = 48,
    access_denied = 49,
    decode_error = 50,
    internal_error = 80,
    certificate_required = 116,
    no_application_protocol = 120,
};

/// As in RFC 8446, "bad_certificate"; "unknown" for a number that has no name there.
std::string_view name(Alert alert) noexcept;

/// Why a handshake that the peer ended failed, from its alert and the reason that it gave, which may
/// be empty and is made printable: unauthenticated when it refused our certificate,
/// version_mismatch when it does not speak our protocol, malformed otherwise.
Error peer_refused(Alert alert, std::string_view reason);

}  // namespace nexar::security
