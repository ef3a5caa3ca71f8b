#include "security/tls_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "security/certificate_message.hpp"

namespace nexar::security {

namespace {

constexpr std::size_t kMaxProtocolBytes = 255;

/// A fatal error for which gnutls_alert_send_appropriate() sends nothing.
constexpr int kAlertWasSent = GNUTLS_E_FATAL_ALERT_RECEIVED;

std::span<const std::byte> bytes_of(const gnutls_datum_t& datum) noexcept {
    return std::as_bytes(std::span(datum.data, datum.size));
}

/// The link uses the session pointer, so this object uses the pointer of the session cache. nexar
/// has no session cache, and without its functions GnuTLS does not touch the pointer.
TlsSession& owner_of(gnutls_session_t session) noexcept {
    return *static_cast<TlsSession*>(gnutls_db_get_ptr(session));
}

}  // namespace

Result<std::unique_ptr<TlsSession>> TlsSession::create(TlsOptions options) {
    const bool joining = !options.credentials;
    if (joining && (options.role == Role::server || options.join_alpn.empty())) {
        return Error(Errc::invalid_argument, "a TLS session needs credentials");
    }
    const std::string& alpn = joining ? options.join_alpn : options.alpn;
    if (alpn.empty() || alpn.size() > kMaxProtocolBytes) {
        return Error(Errc::invalid_argument,
                     fmt::format("the protocol name has {} bytes; allowed: 1 to {}", alpn.size(),
                                 kMaxProtocolBytes));
    }
    if (!options.wall_clock) options.wall_clock = std::chrono::system_clock::now;
    std::unique_ptr<TlsSession> made(new TlsSession(std::move(options)));
    NEXAR_TRY(made->start());
    return made;
}

Result<void> TlsSession::start() {
    const bool client = options_.role == Role::client;
    gnutls_session_t native = nullptr;
    const int code =
        gnutls_init(&native, (client ? GNUTLS_CLIENT : GNUTLS_SERVER) | GNUTLS_NO_TICKETS);
    if (code < 0) return library_error("making a TLS session", code);
    session_.reset(native);

    NEXAR_TRY(set_credentials());
    NEXAR_TRY(set_protocols());
    gnutls_handshake_set_max_packet_length(native, kMaxHandshakeBytes);
    gnutls_db_set_ptr(native, this);
    // Runs before GnuTLS parses the message, to enforce limits first and to give better errors.
    gnutls_handshake_set_hook_function(native, GNUTLS_HANDSHAKE_CERTIFICATE_PKT, GNUTLS_HOOK_PRE,
                                       certificate_hook);
    // Runs after the CertificateVerify message.
    gnutls_session_set_verify_function(native, verify_hook);
    if (client) return {};
    gnutls_certificate_server_set_request(native, GNUTLS_CERT_REQUIRE);
    gnutls_handshake_set_post_client_hello_function(native, hello_hook);
    return {};
}

Result<void> TlsSession::set_credentials() {
    if (joining()) {
        NEXAR_TRY_VALUE(priority, make_priority());
        joiner_priority_ = std::move(priority);
        joiner_credentials_ =
            make_handle<CredentialsHandle, gnutls_certificate_allocate_credentials>();
        if (!joiner_credentials_) {
            return library_error("making credentials", GNUTLS_E_MEMORY_ERROR);
        }
    }
    int code = gnutls_priority_set(
        session_.get(), joining() ? joiner_priority_.get() : options_.credentials->priority());
    if (code < 0) return library_error("choosing the algorithms of TLS", code);
    code = gnutls_credentials_set(
        session_.get(), GNUTLS_CRD_CERTIFICATE,
        joining() ? joiner_credentials_.get() : options_.credentials->native());
    if (code < 0) return library_error("giving credentials to a TLS session", code);
    return {};
}

Result<void> TlsSession::set_protocols() {
    std::vector<gnutls_datum_t> protocols;
    const auto add = [&](const std::string& name) {
        protocols.push_back(datum(std::as_bytes(std::span(name))));
    };
    if (!joining()) add(options_.alpn);
    // A node does not offer the joiners' protocol to a seed, because it has a certificate.
    const bool joiners_too = options_.role == Role::server && !options_.join_alpn.empty();
    if (joining() || joiners_too) add(options_.join_alpn);
    const int code =
        gnutls_alpn_set_protocols(session_.get(), protocols.data(),
                                  static_cast<unsigned>(protocols.size()), GNUTLS_ALPN_MANDATORY);
    if (code < 0) return library_error("naming the protocol of a TLS session", code);
    return {};
}

bool TlsSession::admit(std::size_t bytes) {
    if (refusal_) return false;
    admitted_bytes_ += std::min(bytes, kMaxHandshakeBytes + 1);
    if (admitted_bytes_ <= kMaxHandshakeBytes) return true;
    refuse({Alert::decode_error, fmt::format("your handshake exceeds {} bytes", kMaxHandshakeBytes),
            fmt::format("the peer sent more than {} bytes of handshake, which is the limit; the "
                        "certificates of a node take a few hundred",
                        kMaxHandshakeBytes)});
    return false;
}

int TlsSession::certificate_hook(gnutls_session_t session, unsigned /*type*/, unsigned /*when*/,
                                 unsigned incoming, const gnutls_datum_t* message) noexcept try {
    if (incoming == 0) return 0;
    return owner_of(session).on_certificate(bytes_of(*message));
} catch (...) {
    // Exceptions must not pass through the C code of GnuTLS; only std::bad_alloc can occur.
    return GNUTLS_E_MEMORY_ERROR;
}

int TlsSession::verify_hook(gnutls_session_t session) noexcept try {
    return owner_of(session).on_verified();
} catch (...) {
    return GNUTLS_E_MEMORY_ERROR;
}

int TlsSession::hello_hook(gnutls_session_t session) noexcept try {
    return owner_of(session).on_client_hello();
} catch (...) {
    return GNUTLS_E_MEMORY_ERROR;
}

/// Called after ALPN has been negotiated and before the certificate request is written.
int TlsSession::on_client_hello() {
    with_joiner_ = !options_.join_alpn.empty() && speaks(options_.join_alpn);
    if (with_joiner_) gnutls_certificate_server_set_request(session_.get(), GNUTLS_CERT_IGNORE);
    return 0;
}

bool TlsSession::speaks(std::string_view protocol) const {
    gnutls_datum_t chosen{};
    const bool any = gnutls_alpn_get_selected_protocol(session_.get(), &chosen) >= 0;
    return any && std::ranges::equal(bytes_of(chosen), std::as_bytes(std::span(protocol)));
}

/// GNUTLS_ALPN_MANDATORY fails only if the other side offers protocols at all.
std::optional<Refusal> TlsSession::check_protocol() const {
    const std::string& wanted = joining() ? options_.join_alpn : options_.alpn;
    if (speaks(wanted)) return std::nullopt;
    return Refusal(Alert::no_application_protocol, fmt::format("I speak {}", in_quotes(wanted)),
                   fmt::format("the peer did not agree to the protocol {}; run the same version of "
                               "nexar on both sides",
                               in_quotes(wanted)),
                   Errc::version_mismatch);
}

Checked<Identity> TlsSession::check(std::span<const std::byte> certificate_message) {
    if (auto refusal = check_protocol()) return *std::move(refusal);
    auto read = read_certificate_message(certificate_message);
    if (auto* refusal = std::get_if<Refusal>(&read)) return std::move(*refusal);
    const auto& shown = std::get<ShownCertificates>(read);
    candidate_der_.assign(shown.own().begin(), shown.own().end());
    if (joining()) {
        auto seen = check_seed(shown, {.ca = options_.ca, .now = options_.wall_clock()});
        if (auto* refusal = std::get_if<Refusal>(&seen)) return std::move(*refusal);
        auto& seed = std::get<SeenSeed>(seen);
        seen_ca_ = std::move(seed.ca);
        return seed.identity;
    }
    return check_peer(shown,
                      {.ours = *options_.credentials,
                       .expected = options_.expected,
                       .peer_role = options_.role == Role::client ? Role::server : Role::client,
                       .now = options_.wall_clock()});
}

int TlsSession::on_certificate(std::span<const std::byte> message) {
    auto verdict = check(message);
    if (auto* refusal = std::get_if<Refusal>(&verdict)) return refuse(std::move(*refusal));
    candidate_ = std::get<Identity>(verdict);
    return 0;
}

int TlsSession::on_verified() {
    unsigned count = 0;
    const gnutls_datum_t* const chain = gnutls_certificate_get_peers(session_.get(), &count);
    // The certificate that we checked must be the one whose key GnuTLS verified.
    if (!candidate_ || count == 0 || !std::ranges::equal(bytes_of(chain[0]), candidate_der_)) {
        return refuse({Alert::internal_error, "your certificate was not checked",
                       "GnuTLS verified another certificate than the one that nexar checked"});
    }
    peer_ = candidate_;
    candidate_der_ = {};
    return 0;
}

int TlsSession::refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    const auto alert = static_cast<gnutls_alert_description_t>(refusal_->alert);
    // If the transport cannot send now, the alert is queued; there is nothing else to do.
    (void)gnutls_alert_send(session_.get(), GNUTLS_AL_FATAL, alert);
    return kAlertWasSent;
}

Error TlsSession::failure(Alert sent) const {
    return refusal_ ? refusal_->error : handshake_failed(sent);
}

std::optional<Cipher> TlsSession::cipher() const noexcept {
    switch (gnutls_cipher_get(session_.get())) {
        case GNUTLS_CIPHER_AES_128_GCM:
            return Cipher::aes_128_gcm;
        case GNUTLS_CIPHER_AES_256_GCM:
            return Cipher::aes_256_gcm;
        case GNUTLS_CIPHER_CHACHA20_POLY1305:
            return Cipher::chacha20_poly1305;
        default:
            return std::nullopt;
    }
}

Result<void> TlsSession::export_key(std::string_view label, std::span<std::byte> out) const {
    const int code = gnutls_prf_rfc5705(session_.get(), label.size(), label.data(), 0, nullptr,
                                        out.size(), reinterpret_cast<char*>(out.data()));
    if (code == 0) return {};
    return Error(Errc::invalid_argument,
                 fmt::format("cannot derive {} bytes of keying material for {}: {}; wait until the "
                             "handshake is complete",
                             out.size(), in_quotes(label), gnutls_strerror(code)));
}

}  // namespace nexar::security
