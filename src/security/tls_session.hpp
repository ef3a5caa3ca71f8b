#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.hpp"
#include "security/alert.hpp"
#include "security/credentials.hpp"
#include "security/gnutls_handle.hpp"
#include "security/peer_check.hpp"
#include "security/refusal.hpp"
#include "security/wall_time.hpp"

namespace nexar::security {

enum class Cipher : std::uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305 };

struct TlsOptions {
    Role role = Role::client;
    /// A client without any is a joiner: it shows no certificate and speaks `join_alpn`.
    std::shared_ptr<const Credentials> credentials{};
    std::string alpn{};  // the protocol between nodes; 1 to 255 bytes
    /// The protocol of joiners. A server without it lets none in.
    std::string join_alpn{};
    Expectation expected{};
    /// What a joiner knows of the seed's CA; none: nothing, see SeedRules.
    std::optional<PublicKeyHash> ca{};
    WallClock wall_clock{};  // empty: the machine's
};

/// One side of a mutual TLS 1.3 handshake, to be driven by QUIC (RFC 9001) or by a byte stream.
///
/// Both sides show a certificate of the cluster CA; the other side's is checked inside the
/// handshake, so a handshake that completed is one with the peer(). Note that a client's handshake
/// completes before the server has seen the client's certificate. Only a joiner shows none, to a
/// seed that it measures by the hash of the CA's key.
///
/// Tickets are off and the protocol is mandatory. Not thread-safe. The session pointer
/// (gnutls_session_set_ptr) is the caller's; the pointer of gnutls_db_set_ptr, the verify function
/// and the handshake hook are this object's.
class TlsSession {
public:
    /// An Error (invalid_argument) for a server without credentials or a protocol of another
    /// length.
    static Result<std::unique_ptr<TlsSession>> create(TlsOptions options);

    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;
    ~TlsSession() = default;

    gnutls_session_t native() noexcept { return session_.get(); }

    /// To be called with the size of what arrived before it is given to gnutls_handshake_write():
    /// GnuTLS collects a message to its end, up to 16 MiB, before it looks at its own limit. False,
    /// and a refusal(), when the peer has sent more than kMaxHandshakeBytes in all.
    bool admit(std::size_t bytes);

    /// Whom we talk to, once its certificate was accepted and it proved to hold the key. None for a
    /// joiner.
    const std::optional<Identity>& peer() const noexcept { return peer_; }

    /// The peer is a joiner: nobody knows yet who it is.
    bool with_joiner() const noexcept { return with_joiner_; }

    /// What the seed showed as its CA's, to a joiner.
    const std::optional<Certificate>& seen_ca() const noexcept { return seen_ca_; }

    /// Why we did not accept the peer. The alert was sent already (gnutls_alert_send, which reaches
    /// the function of gnutls_alert_set_read_function under QUIC), and gnutls_handshake() fails
    /// with GNUTLS_E_FATAL_ALERT_RECEIVED, for which gnutls_alert_send_appropriate() sends no
    /// other.
    const std::optional<Refusal>& refusal() const noexcept { return refusal_; }

    /// Why a handshake that failed on this side did: the refusal if there is one, else what the
    /// alert says that GnuTLS chose.
    Error failure(Alert sent) const;

    /// What was agreed; nothing before the hellos were exchanged.
    std::optional<Cipher> cipher() const noexcept;

    /// Fills `out` with keying material that only the two ends know (RFC 8446 section 7.5, empty
    /// context). An Error (invalid_argument) before the handshake is complete.
    Result<void> export_key(std::string_view label, std::span<std::byte> out) const;

private:
    explicit TlsSession(TlsOptions options) noexcept : options_(std::move(options)) {}

    Result<void> start();
    Result<void> set_credentials();
    Result<void> set_protocols();
    bool joining() const noexcept { return options_.credentials == nullptr; }
    int on_client_hello();
    Checked<Identity> check(std::span<const std::byte> certificate_message);
    std::optional<Refusal> check_protocol() const;
    bool speaks(std::string_view protocol) const;
    int refuse(Refusal refusal);
    int on_certificate(std::span<const std::byte> message);
    int on_verified();

    static int certificate_hook(gnutls_session_t session, unsigned type, unsigned when,
                                unsigned incoming, const gnutls_datum_t* message) noexcept;
    static int verify_hook(gnutls_session_t session) noexcept;
    static int hello_hook(gnutls_session_t session) noexcept;

    TlsOptions options_;
    // Of a joiner, which has no Credentials; the session reads them.
    PriorityHandle joiner_priority_;
    CredentialsHandle joiner_credentials_;
    SessionHandle session_;
    bool with_joiner_ = false;
    std::optional<Certificate> seen_ca_;
    std::size_t admitted_bytes_ = 0;
    /// What the peer's certificate says while the proof of its key is still to come.
    std::optional<Identity> candidate_;
    std::vector<std::byte> candidate_der_;
    std::optional<Identity> peer_;
    std::optional<Refusal> refusal_;
};

}  // namespace nexar::security
