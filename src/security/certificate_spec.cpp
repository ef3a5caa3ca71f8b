#include "security/certificate_spec.hpp"

#include <gnutls/crypto.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "base/try.hpp"

namespace nexar::security {

namespace {

/// Keeps the first failure in a sequence of GnuTLS calls.
class FirstFailure {
public:
    FirstFailure& operator<<(int code) noexcept {
        if (code_ >= 0 && code < 0) code_ = code;
        return *this;
    }
    Result<void> result(std::string_view doing) const {
        if (code_ < 0) return library_error(doing, code_);
        return {};
    }

private:
    int code_ = 0;
};

std::time_t seconds(WallTime time) {
    return std::chrono::system_clock::to_time_t(time);
}

/// RFC 7093 section 2 allows any hash of the key; these are the first bytes of PublicKey::hash().
std::array<std::byte, 20> key_id(const PublicKey& key) {
    std::array<std::byte, 20> id{};
    std::ranges::copy_n(key.hash().begin(), id.size(), id.begin());
    return id;
}

Result<void> set_serial(gnutls_x509_crt_t certificate) {
    std::array<unsigned char, 16> serial{};
    const int code = gnutls_rnd(GNUTLS_RND_NONCE, serial.data(), serial.size());
    if (code < 0) return library_error("taking random bytes", code);
    serial[0] = static_cast<unsigned char>((serial[0] & 0x3fU) | 0x40U);
    FirstFailure calls;
    calls << gnutls_x509_crt_set_serial(certificate, serial.data(), serial.size());
    return calls.result("numbering a certificate");
}

Result<void> set_subject(gnutls_x509_crt_t certificate, const CertificateSpec& spec) {
    auto key = make_handle<PublicKeyHandle, gnutls_pubkey_init>();
    if (!key) return library_error("making a certificate", GNUTLS_E_MEMORY_ERROR);
    const gnutls_datum_t spki = datum(spec.subject_key.spki());
    const auto id = key_id(spec.subject_key);
    FirstFailure calls;
    calls << gnutls_pubkey_import(key.get(), &spki, GNUTLS_X509_FMT_DER)
          << gnutls_x509_crt_set_pubkey(certificate, key.get())
          << gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                           spec.subject.data(),
                                           static_cast<unsigned>(spec.subject.size()))
          << gnutls_x509_crt_set_subject_key_id(certificate, id.data(), id.size());
    for (const std::string& uri : spec.uris) {
        calls << gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_URI, uri.data(),
                                                      static_cast<unsigned>(uri.size()),
                                                      GNUTLS_FSAN_APPEND);
    }
    return calls.result("naming the subject of a certificate");
}

Result<void> set_rules(gnutls_x509_crt_t certificate, const CertificateSpec& spec) {
    FirstFailure calls;
    calls << gnutls_x509_crt_set_version(certificate, 3)
          << gnutls_x509_crt_set_activation_time(certificate, seconds(spec.validity.not_before))
          << gnutls_x509_crt_set_expiration_time(certificate, seconds(spec.validity.not_after))
          << gnutls_x509_crt_set_basic_constraints(certificate, spec.is_ca ? 1 : 0,
                                                   spec.is_ca ? 0 : -1)
          << gnutls_x509_crt_set_key_usage(certificate, spec.key_usage);
    for (const char* const purpose : spec.purposes) {
        calls << gnutls_x509_crt_set_key_purpose_oid(certificate, purpose, 0);
    }
    return calls.result("limiting the use of a certificate");
}

}  // namespace

Result<std::vector<std::byte>> sign_certificate(const CertificateSpec& spec, const Signer& signer) {
    auto certificate = make_handle<CertificateHandle, gnutls_x509_crt_init>();
    if (!certificate) return library_error("making a certificate", GNUTLS_E_MEMORY_ERROR);
    NEXAR_TRY(set_rules(certificate.get(), spec));
    NEXAR_TRY(set_subject(certificate.get(), spec));
    NEXAR_TRY(set_serial(certificate.get()));

    CertificateHandle issuer;
    if (signer.certificate != nullptr) {
        NEXAR_TRY_VALUE(handle, signer.certificate->native());
        issuer = std::move(handle);
    }
    const auto id = key_id(signer.key.public_key());
    OwnedDatum der;
    FirstFailure calls;
    calls << gnutls_x509_crt_set_authority_key_id(certificate.get(), id.data(), id.size())
          << gnutls_x509_crt_sign2(certificate.get(), issuer ? issuer.get() : certificate.get(),
                                   signer.key.native(), GNUTLS_DIG_SHA512, 0)
          << gnutls_x509_crt_export2(certificate.get(), GNUTLS_X509_FMT_DER, der.out());
    NEXAR_TRY(calls.result("signing a certificate"));
    return std::vector<std::byte>(der.bytes().begin(), der.bytes().end());
}

}  // namespace nexar::security
