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
    /// A client without credentials is a joiner: it presents no certificate and uses `join_alpn`.
    std::shared_ptr<const Credentials> credentials{};
    std::string alpn{};  // the protocol between nodes; 1 to 255 bytes
    /// The protocol of joiners. A server without it admits no joiners.
    std::string join_alpn{};
    Expectation expected{};
    /// The hash of the CA's key that a joiner expects; absent if it knows nothing, see SeedRules.
    std::optional<PublicKeyHash> ca{};
    WallClock wall_clock{};  // empty: the system clock
};

/// One side of a mutual TLS 1.3 handshake, driven by QUIC (RFC 9001) or by a byte stream.
///
/// Both sides present a certificate of the cluster CA, and each checks that of the other during the
/// handshake, so a completed handshake is one with peer(). Note that the handshake of a client
/// completes before the server has seen the client's certificate. Only a joiner presents no
/// certificate; it authenticates the seed by the hash of the CA's key.
///
/// Session tickets are off and ALPN is mandatory. Not thread-safe. The caller may use the session
/// pointer (gnutls_session_set_ptr); this object uses the pointer of gnutls_db_set_ptr, the verify
/// function and the handshake hook.
class TlsSession {
public:
    /// Fails with invalid_argument for a server without credentials, or if the protocol name is
    /// empty or too long.
    static Result<std::unique_ptr<TlsSession>> create(TlsOptions options);

    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;
    ~TlsSession() = default;

    gnutls_session_t native() noexcept { return session_.get(); }

    /// Call this with the size of received data before passing it to gnutls_handshake_write():
    /// GnuTLS buffers a message of up to 16 MiB completely before it checks its own limit. Returns
    /// false, and sets refusal(), if the peer has sent more than kMaxHandshakeBytes in total.
    bool admit(std::size_t bytes);

    /// The peer, after its certificate was accepted and it has proved that it holds the key. Empty
    /// for a joiner.
    const std::optional<Identity>& peer() const noexcept { return peer_; }

    /// True if the peer is a joiner, whose identity is not known yet.
    bool with_joiner() const noexcept { return with_joiner_; }

    /// For a joiner: the CA certificate that the seed presented.
    const std::optional<Certificate>& seen_ca() const noexcept { return seen_ca_; }

    /// Why we refused the peer. The alert has already been sent (gnutls_alert_send, which under
    /// QUIC calls the function of gnutls_alert_set_read_function), and gnutls_handshake() fails
    /// with GNUTLS_E_FATAL_ALERT_RECEIVED, for which gnutls_alert_send_appropriate() sends no
    /// second alert.
    const std::optional<Refusal>& refusal() const noexcept { return refusal_; }

    /// Why the handshake failed on this side: the refusal if there is one, otherwise derived from
    /// the alert that GnuTLS chose.
    Error failure(Alert sent) const;

    /// The negotiated cipher; nullopt before the hello messages were exchanged.
    std::optional<Cipher> cipher() const noexcept;

    /// Fills `out` with keying material that only the two ends know (RFC 8446 section 7.5, empty
    /// context). Fails with invalid_argument before the handshake is complete.
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
    // For a joiner, which has no Credentials; the session refers to them.
    PriorityHandle joiner_priority_;
    CredentialsHandle joiner_credentials_;
    SessionHandle session_;
    bool with_joiner_ = false;
    std::optional<Certificate> seen_ca_;
    std::size_t admitted_bytes_ = 0;
    /// From the peer's certificate, until the peer has proved that it holds the key.
    std::optional<Identity> candidate_;
    std::vector<std::byte> candidate_der_;
    std::optional<Identity> peer_;
    std::optional<Refusal> refusal_;
};

}  // namespace nexar::security
