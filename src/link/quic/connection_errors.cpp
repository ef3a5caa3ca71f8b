#include "link/quic/connection_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"
#include "security/alert.hpp"

namespace nexar::quic {

namespace {

std::string said(std::string_view reason) {
    return reason.empty() ? std::string() : fmt::format(": \"{}\"", printable(reason));
}

Error refused_by_tls(const std::string& peer, security::Alert alert, std::string_view reason) {
    if (alert == security::Alert::no_application_protocol) {
        return {Errc::version_mismatch,
                fmt::format("{} does not speak the same protocol: one side runs with "
                            "protection=none and the other does not, or their versions differ",
                            peer)};
    }
    return {
        Errc::unauthenticated,
        fmt::format("{} refused this node in the handshake with TLS alert {} ({}){}; see its log "
                    "and the certificate of this node",
                    peer, static_cast<unsigned>(alert), security::name(alert), said(reason))};
}

}  // namespace

Error Connection::describe_peer_close() const {
    const std::string peer = path_.remote.text();
    const ngtcp2_ccerr* close = ngtcp2_conn_get_ccerr(conn_.get());
    const auto* words = reinterpret_cast<const char*>(close->reason);
    const std::string_view reason =
        close->reasonlen == 0 ? std::string_view() : std::string_view(words, close->reasonlen);
    if (close->type == NGTCP2_CCERR_TYPE_APPLICATION) {
        return {Errc::link_closed,
                fmt::format("{} {} the link{}", peer,
                            close->error_code == kCloseDone ? "closed" : "gave up", said(reason))};
    }
    if (close->error_code >= NGTCP2_CRYPTO_ERROR &&
        close->error_code <= NGTCP2_CRYPTO_ERROR + 255) {
        return refused_by_tls(peer, static_cast<security::Alert>(close->error_code & 0xffU),
                              reason);
    }
    if (close->error_code == NGTCP2_CONNECTION_REFUSED) {
        return {Errc::timed_out,
                fmt::format("{} ended the handshake{}; dial again", peer, said(reason))};
    }
    return {Errc::link_closed, fmt::format("{} gave up the link with QUIC error {:#x}{}", peer,
                                           close->error_code, said(reason))};
}

Error Connection::describe(int code) const {
    const std::string peer = path_.remote.text();
    switch (code) {
        case NGTCP2_ERR_IDLE_CLOSE:
            return {
                Errc::timed_out,
                fmt::format("nothing was heard from {} for {} s: its process ended or is stopped, "
                            "its host is down, or the network path is interrupted",
                            peer, std::chrono::duration<double>(idle_limit_).count())};
        case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
            return {Errc::timed_out,
                    fmt::format("the handshake with {} did not complete in time; check the "
                                "address, and that firewalls let UDP pass both ways",
                                peer)};
        case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
            return {
                Errc::version_mismatch,
                fmt::format("{} does not speak version 1 of QUIC; check that it is a nexar node",
                            peer)};
        case NGTCP2_ERR_NOMEM:
            return {Errc::out_of_memory,
                    fmt::format("there is not enough memory for the link to {}", peer)};
        case NGTCP2_ERR_CRYPTO: {
            const auto alert = static_cast<security::Alert>(ngtcp2_conn_get_tls_alert(conn_.get()));
            if (!tls_->refusal() && alert == security::Alert::no_application_protocol) {
                return refused_by_tls(peer, alert, {});
            }
            return tls_->failure(alert).within({.host = peer});
        }
        default:
            break;
    }
    return {Errc::protocol_violation,
            fmt::format("the link to {} failed: {} ({})", peer, ngtcp2_strerror(code), code)};
}

void Connection::say_goodbye(TimePoint now, std::uint64_t code, const Error& reason) {
    ngtcp2_ccerr close{};
    ngtcp2_ccerr_default(&close);
    std::string words = close_reason_;
    const std::uint8_t alert = ngtcp2_conn_get_tls_alert(conn_.get());
    if (const auto& refusal = tls_->refusal()) words = refusal->reason;
    const auto* text = reinterpret_cast<const std::uint8_t*>(words.data());
    if (alert != 0) {
        ngtcp2_ccerr_set_tls_alert(&close, alert, text, words.size());
    } else if (library_error_ == NGTCP2_ERR_HANDSHAKE_TIMEOUT) {
        if (words.empty()) words = "it did not complete in time";
        text = reinterpret_cast<const std::uint8_t*>(words.data());
        ngtcp2_ccerr_set_transport_error(&close, NGTCP2_CONNECTION_REFUSED, text, words.size());
    } else if (library_error_ != 0) {
        ngtcp2_ccerr_set_liberr(&close, library_error_, nullptr, 0);
    } else {
        if (words.empty() && code == kCloseFailed) words = name(reason.code());
        text = reinterpret_cast<const std::uint8_t*>(words.data());
        ngtcp2_ccerr_set_application_error(&close, code, text, words.size());
    }
    goodbye_.resize(kLeastDatagram);
    ngtcp2_path_storage path{};
    ngtcp2_path_storage_zero(&path);
    ngtcp2_pkt_info info{};
    const auto size =
        ngtcp2_conn_write_connection_close(conn_.get(), &path.path, &info, native(goodbye_.data()),
                                           goodbye_.size(), &close, stamp(now));
    goodbye_.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    goodbye_due_ = !goodbye_.empty();
}

}  // namespace nexar::quic
