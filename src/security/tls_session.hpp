#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/identity.hpp"
#include "security/alert.hpp"
#include "security/certificate.hpp"
#include "security/credentials.hpp"
#include "security/gnutls_handle.hpp"

namespace nexar::security {

enum class Role : std::uint8_t { client, server };

enum class Cipher : std::uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305 };

/// Gives the wall time, which certificates are checked against.
using WallClock = std::function<WallTime()>;

/// Whom we want to talk to: any member of the cluster, or one.
struct Expectation {
    ClusterId cluster{};
    std::optional<NodeId> node{};
};

struct TlsOptions {
    Role role = Role::client;
    std::shared_ptr<const Credentials> credentials{};
    std::string alpn{};  // the one protocol that is spoken; 1 to 255 bytes
    Expectation expected{};
    WallClock wall_clock{};  // empty: the machine's
};

/// Why a peer was not believed.
struct Refusal {
    Error error;         // unauthenticated; for our log and our caller
    Alert alert{};       // what TLS tells the peer
    std::string reason;  // what else the peer may be told: at most kMaxReasonBytes, no secrets
};

/// One side of a mutual TLS 1.3 handshake, to be driven by QUIC (RFC 9001) or by a byte stream.
///
/// Both sides show a certificate of the cluster CA; the other side's is checked inside the
/// handshake, so a handshake that completed is one with the peer(). Note that a client's handshake
/// completes before the server has seen the client's certificate.
///
/// Tickets are off, the protocol is mandatory, and a handshake message is at most
/// kMaxMessageBytes. Not thread-safe. The session pointer (gnutls_session_set_ptr) is the caller's;
/// the pointers of gnutls_db_set_ptr, the verify function and the handshake hook are this object's.
class TlsSession {
public:
    static constexpr std::size_t kMaxMessageBytes = 16 * 1024;
    static constexpr std::size_t kMaxCertificates = 2;
    static constexpr std::size_t kMaxReasonBytes = 120;

    static Result<std::unique_ptr<TlsSession>> create(TlsOptions options);

    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    gnutls_session_t native() noexcept { return session_.get(); }

    /// Whom we talk to, once its certificate was accepted and it proved to hold the key.
    const std::optional<Identity>& peer() const noexcept { return peer_; }

    /// Why we did not accept the peer's certificate. The alert was sent already (gnutls_alert_send,
    /// which reaches the function of gnutls_alert_set_read_function under QUIC), and
    /// gnutls_handshake() fails with a code for which gnutls_alert_send_appropriate() sends no other.
    const std::optional<Refusal>& refusal() const noexcept { return refusal_; }

    /// What was agreed; nothing before the hellos were exchanged.
    std::optional<Cipher> cipher() const noexcept;

    /// Fills `out` with keying material that only the two ends know (RFC 8446 section 7.5, empty
    /// context). An Error (invalid_argument) before the handshake is complete.
    Result<void> export_key(std::string_view label, std::span<std::byte> out) const;

private:
    explicit TlsSession(TlsOptions options) noexcept;

    TlsOptions options_;
    SessionHandle session_;
    std::optional<Identity> peer_;
    std::optional<Refusal> refusal_;
};

}  // namespace nexar::security
