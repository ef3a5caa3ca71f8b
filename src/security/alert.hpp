#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string_view>

namespace nexar::security {

/// A TLS alert (RFC 8446 section 6). QUIC carries it as the error code 0x100 + number (RFC 9001
/// section 4.8). Any number may arrive; those that nexar tells apart have names here.
enum class Alert : std::uint8_t {
    unexpected_message = 10,
    handshake_failure = 40,
    bad_certificate = 42,
    unsupported_certificate = 43,
    certificate_revoked = 44,
    certificate_expired = 45,
    certificate_unknown = 46,
    illegal_parameter = 47,
    unknown_ca = 48,
    access_denied = 49,
    decode_error = 50,
    decrypt_error = 51,
    protocol_version = 70,
    internal_error = 80,
    missing_extension = 109,
    certificate_required = 116,
    no_application_protocol = 120,
};

/// As in RFC 8446, "bad_certificate"; "unknown" for a number that has no name here.
std::string_view name(Alert alert) noexcept;

/// Why a handshake that the peer ended failed, from its alert and the reason that it gave, which
/// may be empty and is made printable. unauthenticated when it is about our certificate,
/// version_mismatch when it does not speak our protocol, malformed otherwise.
Error peer_refused(Alert alert, std::string_view reason);

/// Why a handshake that GnuTLS ended on this side failed, from the alert that it chose.
Error handshake_failed(Alert alert);

}  // namespace nexar::security
