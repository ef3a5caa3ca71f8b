#include "security/credentials.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/try.hpp"
#include "security/cpu_aes.hpp"

namespace nexar::security {

namespace {

/// Only TLS 1.3, and only our algorithms: a peer without them does not run nexar. The compatibility
/// mode of RFC 8446 appendix D.4 is for middleboxes on TCP, and RFC 9001 section 8.4 forbids it in
/// QUIC.
std::string priority_text(bool aes) {
    constexpr std::string_view kAes = "+AES-128-GCM:+AES-256-GCM";
    constexpr std::string_view kChaCha = "+CHACHA20-POLY1305";
    return fmt::format(
        "NONE:+VERS-TLS1.3:+AEAD:+CTYPE-X509:{}:{}:+GROUP-X25519:+GROUP-SECP256R1:"
        "+SIGN-EDDSA-ED25519:%DISABLE_TLS13_COMPAT_MODE",
        aes ? kAes : kChaCha, aes ? kChaCha : kAes);
}

Error bad_credentials(std::string_view why) {
    return {
        Errc::bad_config,
        fmt::format("the key and the certificates of this node do not belong together: {}", why)};
}

using AbstractKeyHandle = Handle<gnutls_privkey_t, gnutls_privkey_deinit>;

/// Certificates in the form that GnuTLS presents, in exactly this order: its function for parsed
/// certificates sorts a chain and drops certificates that it considers useless.
class PublicCertificates {
public:
    PublicCertificates() noexcept = default;
    PublicCertificates(const PublicCertificates&) = delete;
    PublicCertificates& operator=(const PublicCertificates&) = delete;
    ~PublicCertificates() {
        for (gnutls_pcert_st& certificate : list_) gnutls_pcert_deinit(&certificate);
    }

    Result<void> add(std::span<const std::byte> der) {
        const gnutls_datum_t input = datum(der);
        gnutls_pcert_st certificate{};
        const int code = gnutls_pcert_import_x509_raw(&certificate, &input, GNUTLS_X509_FMT_DER, 0);
        if (code < 0) return bad_credentials(gnutls_strerror(code));
        list_.push_back(certificate);
        // The other side checks what a certificate allows, and gives a better error message.
        gnutls_pubkey_set_key_usage(certificate.pubkey, GNUTLS_KEY_DIGITAL_SIGNATURE);
        return {};
    }

    /// If this succeeds, `credentials` owns the certificates and the key.
    int hand_over(gnutls_certificate_credentials_t credentials, AbstractKeyHandle key) {
        const int code = gnutls_certificate_set_key(credentials, nullptr, 0, list_.data(),
                                                    static_cast<int>(list_.size()), key.get());
        if (code < 0) return code;
        list_.clear();
        static_cast<void>(key.release());  // NOLINT(bugprone-unused-return-value): GnuTLS owns it
        return 0;
    }

private:
    std::vector<gnutls_pcert_st> list_;
};

/// Returns true if the CA signed the certificate, at any time.
bool signed_by(gnutls_x509_crt_t certificate, gnutls_x509_crt_t ca) {
    unsigned status = 0;
    const int code = gnutls_x509_crt_list_verify(
        &certificate, 1, &ca, 1, nullptr, 0,
        GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS, &status);
    return code >= 0 && status == 0;
}

}  // namespace

Result<PriorityHandle> make_priority() {
    gnutls_priority_t native = nullptr;
    const char* where = nullptr;
    const int code = gnutls_priority_init(&native, priority_text(cpu_has_aes()).c_str(), &where);
    if (code < 0) return library_error("choosing the algorithms of TLS", code);
    return PriorityHandle(native);
}

Result<std::shared_ptr<Credentials>> Credentials::prepare(KeyPair key, std::span<const Der> chain,
                                                          Certificate ca) {
    std::shared_ptr<Credentials> made(new Credentials(std::move(key), std::move(ca)));
    NEXAR_TRY_VALUE(priority, make_priority());
    made->priority_ = std::move(priority);
    NEXAR_TRY_VALUE(native_ca, made->ca_.native());
    made->native_ca_ = std::move(native_ca);
    made->native_ = make_handle<CredentialsHandle, gnutls_certificate_allocate_credentials>();
    if (!made->native_) return library_error("making credentials", GNUTLS_E_MEMORY_ERROR);
    // create() has already compared them; those of create_unchecked() need not match.
    gnutls_certificate_set_flags(made->native_.get(), GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
    if (!chain.empty()) NEXAR_TRY(made->set_chain(chain));
    return made;
}

Result<void> Credentials::set_chain(std::span<const Der> chain) {
    PublicCertificates shown;
    for (const Der& der : chain) NEXAR_TRY(shown.add(der));
    auto key = make_handle<AbstractKeyHandle, gnutls_privkey_init>();
    if (!key) return library_error("making credentials", GNUTLS_E_MEMORY_ERROR);
    int code = gnutls_privkey_import_x509(key.get(), key_.native(), GNUTLS_PRIVKEY_IMPORT_COPY);
    if (code >= 0) code = shown.hand_over(native_.get(), std::move(key));
    if (code < 0) return library_error("making credentials", code);

    const auto own = Certificate::from_der(chain.front());
    if (!own) return {};
    validity_ = own->validity();
    if (const auto identity = own->identity()) identity_ = *identity;
    return {};
}

Result<std::shared_ptr<const Credentials>> Credentials::create(KeyPair key, const Certificate& own,
                                                               Certificate ca) {
    const std::vector<Der> chain{own.der()};
    return create_checked(std::move(key), own, std::move(ca), chain);
}

Result<std::shared_ptr<const Credentials>> Credentials::create_seed(KeyPair key,
                                                                    const Certificate& own,
                                                                    Certificate ca) {
    const std::vector<Der> chain{own.der(), ca.der()};
    return create_checked(std::move(key), own, std::move(ca), chain);
}

Result<std::shared_ptr<const Credentials>> Credentials::create_checked(KeyPair key,
                                                                       const Certificate& own,
                                                                       Certificate ca,
                                                                       std::span<const Der> chain) {
    NEXAR_TRY_VALUE(public_key, own.public_key());
    if (public_key != key.public_key()) {
        return bad_credentials("the certificate is for another key");
    }
    const auto identity = own.identity();
    if (!identity) return bad_credentials(identity.error().cause());
    NEXAR_TRY_VALUE(native, own.native());
    NEXAR_TRY_VALUE(made, prepare(std::move(key), chain, std::move(ca)));
    if (!signed_by(native.get(), made->native_ca())) {
        return bad_credentials("the certificate was not signed by the CA that was given");
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
