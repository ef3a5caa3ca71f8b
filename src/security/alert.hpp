#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string_view>

namespace nexar::security {

/// A TLS alert (RFC 8446 section 6). QUIC carries it as error code 0x100 + number (RFC 9001 section
/// 4.8). A peer may send any number; the alerts that nexar distinguishes have names here.
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

/// The name that RFC 8446 uses, such as "bad_certificate"; "unknown" for a number without a name
/// here.
std::string_view name(Alert alert) noexcept;

/// The error of a handshake that the peer ended, from its alert and the reason it gave, which may
/// be empty and may contain anything. The code is unauthenticated if the alert is about our
/// certificate, version_mismatch if the peer does not speak our protocol, and malformed otherwise.
Error peer_refused(Alert alert, std::string_view reason);

/// The error of a handshake that GnuTLS ended on this side, from the alert that it chose.
Error handshake_failed(Alert alert);

}  // namespace nexar::security
