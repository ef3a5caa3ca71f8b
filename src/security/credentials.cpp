#include "security/credentials.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/try.hpp"
#include "security/cpu_aes.hpp"

namespace nexar::security {

namespace {

/// TLS 1.3 and nothing else; a peer without our algorithms is no nexar. The compatibility mode of
/// RFC 8446 appendix D.4 is for middleboxes on TCP, and RFC 9001 section 8.4 forbids it in QUIC.
std::string priority_text(bool aes) {
    constexpr std::string_view kAes = "+AES-128-GCM:+AES-256-GCM";
    constexpr std::string_view kChaCha = "+CHACHA20-POLY1305";
    return fmt::format(
        "NONE:+VERS-TLS1.3:+AEAD:+CTYPE-X509:{}:{}:+GROUP-X25519:+GROUP-SECP256R1:"
        "+SIGN-EDDSA-ED25519:%DISABLE_TLS13_COMPAT_MODE",
        aes ? kAes : kChaCha, aes ? kChaCha : kAes);
}

Result<PriorityHandle> make_priority() {
    gnutls_priority_t native = nullptr;
    const char* where = nullptr;
    const int code = gnutls_priority_init(&native, priority_text(cpu_has_aes()).c_str(), &where);
    if (code < 0) return library_error("choosing the algorithms of TLS", code);
    return PriorityHandle(native);
}

Error bad_credentials(std::string_view why) {
    return {Errc::bad_config,
            fmt::format("key and certificates of this node do not belong together: {}", why)};
}

/// Whether the CA signed it, at whatever time.
bool signed_by(gnutls_x509_crt_t certificate, gnutls_x509_crt_t ca) {
    unsigned status = 0;
    const int code = gnutls_x509_crt_list_verify(
        &certificate, 1, &ca, 1, nullptr, 0,
        GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS, &status);
    return code >= 0 && status == 0;
}

}  // namespace

Result<std::shared_ptr<Credentials>> Credentials::prepare(KeyPair key, std::span<const Der> chain,
                                                          Certificate ca) {
    std::shared_ptr<Credentials> made(new Credentials(std::move(key), std::move(ca)));
    NEXAR_TRY_VALUE(priority, make_priority());
    made->priority_ = std::move(priority);
    NEXAR_TRY_VALUE(native_ca, made->ca_.native());
    made->native_ca_ = std::move(native_ca);
    made->native_ = make_handle<CredentialsHandle, gnutls_certificate_allocate_credentials>();
    if (!made->native_) return library_error("making credentials", GNUTLS_E_MEMORY_ERROR);
    if (!chain.empty()) NEXAR_TRY(made->set_chain(chain));
    return made;
}

Result<void> Credentials::set_chain(std::span<const Der> chain) {
    std::vector<CertificateHandle> handles;
    std::vector<gnutls_x509_crt_t> natives;
    for (const Der& der : chain) {
        auto handle = make_handle<CertificateHandle, gnutls_x509_crt_init>();
        if (!handle) return library_error("making credentials", GNUTLS_E_MEMORY_ERROR);
        const gnutls_datum_t input = datum(der);
        const int code = gnutls_x509_crt_import(handle.get(), &input, GNUTLS_X509_FMT_DER);
        if (code < 0) return bad_credentials(gnutls_strerror(code));
        natives.push_back(handle.get());
        handles.push_back(std::move(handle));
    }
    const int code = gnutls_certificate_set_x509_key(
        native_.get(), natives.data(), static_cast<int>(natives.size()), key_.native());
    if (code < 0) return bad_credentials(gnutls_strerror(code));
    const auto own = Certificate::from_der(chain.front());
    if (!own) return {};
    validity_ = own->validity();
    if (const auto identity = own->identity()) identity_ = *identity;
    return {};
}

Result<std::shared_ptr<const Credentials>> Credentials::create(KeyPair key, const Certificate& own,
                                                               Certificate ca) {
    NEXAR_TRY_VALUE(public_key, own.public_key());
    if (public_key != key.public_key()) {
        return bad_credentials("the certificate is for another key");
    }
    const auto identity = own.identity();
    if (!identity) return bad_credentials(identity.error().cause());
    NEXAR_TRY_VALUE(native, own.native());
    const std::vector<Der> chain{own.der()};
    NEXAR_TRY_VALUE(made, prepare(std::move(key), chain, std::move(ca)));
    if (!signed_by(native.get(), made->native_ca())) {
        return bad_credentials("the certificate was not signed by the CA that is given");
    }
    return std::shared_ptr<const Credentials>(std::move(made));
}

Result<std::shared_ptr<const Credentials>> Credentials::create_unchecked(KeyPair key,
                                                                         std::span<const Der> chain,
                                                                         Certificate ca) {
    NEXAR_TRY_VALUE(made, prepare(std::move(key), chain, std::move(ca)));
    return std::shared_ptr<const Credentials>(std::move(made));
}

}  // namespace nexar::security
