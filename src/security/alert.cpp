#include "security/alert.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "security/refusal.hpp"

namespace nexar::security {

namespace {

Errc code_of(Alert alert) noexcept {
    switch (alert) {
        case Alert::bad_certificate:
        case Alert::unsupported_certificate:
        case Alert::certificate_revoked:
        case Alert::certificate_expired:
        case Alert::certificate_unknown:
        case Alert::unknown_ca:
        case Alert::access_denied:
        case Alert::decrypt_error:
        case Alert::certificate_required:
            return Errc::unauthenticated;
        case Alert::handshake_failure:
        case Alert::protocol_version:
        case Alert::no_application_protocol:
            return Errc::version_mismatch;
        default:
            return Errc::malformed;
    }
}

std::string_view advice(Errc code) noexcept {
    switch (code) {
        case Errc::unauthenticated:
            return "compare the clusters, the node ids and the clocks of both sides";
        case Errc::version_mismatch:
            return "run the same version of nexar on both sides";
        default:
            return "see the peer's log for the cause";
    }
}

}  // namespace

std::string_view name(Alert alert) noexcept {
    switch (alert) {
        case Alert::unexpected_message:
            return "unexpected_message";
        case Alert::handshake_failure:
            return "handshake_failure";
        case Alert::bad_certificate:
            return "bad_certificate";
        case Alert::unsupported_certificate:
            return "unsupported_certificate";
        case Alert::certificate_revoked:
            return "certificate_revoked";
        case Alert::certificate_expired:
            return "certificate_expired";
        case Alert::certificate_unknown:
            return "certificate_unknown";
        case Alert::illegal_parameter:
            return "illegal_parameter";
        case Alert::unknown_ca:
            return "unknown_ca";
        case Alert::access_denied:
            return "access_denied";
        case Alert::decode_error:
            return "decode_error";
        case Alert::decrypt_error:
            return "decrypt_error";
        case Alert::protocol_version:
            return "protocol_version";
        case Alert::internal_error:
            return "internal_error";
        case Alert::missing_extension:
            return "missing_extension";
        case Alert::certificate_required:
            return "certificate_required";
        case Alert::no_application_protocol:
            return "no_application_protocol";
    }
    return "unknown";
}

Error peer_refused(Alert alert, std::string_view reason) {
    const Errc code = code_of(alert);
    const std::string said =
        reason.empty() ? "without a reason"
                       : fmt::format("saying \"{}\"", printable(reason, Refusal::kMaxReasonBytes));
    return {code, fmt::format("the peer ended the handshake {} (TLS alert {}, {}); {}", said,
                              static_cast<unsigned>(alert), name(alert), advice(code))};
}

Error handshake_failed(Alert alert) {
    if (alert == Alert::decode_error) {
        return {Errc::limit_exceeded,
                "the peer's handshake is malformed or exceeds the limit of 16384 bytes (TLS alert "
                "50, decode_error)"};
    }
    const Errc code = code_of(alert);
    return {code, fmt::format("the handshake with the peer failed (TLS alert {}, {}); {}",
                              static_cast<unsigned>(alert), name(alert), advice(code))};
}

Refusal::Refusal(Alert alert_to_send, std::string_view reason_for_peer, std::string cause,
                 Errc code)
    : alert(alert_to_send),
      reason(printable(reason_for_peer, kMaxReasonBytes)),
      error(code, std::move(cause)) {}

}  // namespace nexar::security
