#include "security/key_pair.hpp"

#include <utility>

#include "base/try.hpp"

namespace nexar::security {

namespace {

Result<PublicKey> public_half(gnutls_x509_privkey_t key) {
    gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
    OwnedDatum point;
    const int code = gnutls_x509_privkey_export_ecc_raw(key, &curve, point.out(), nullptr, nullptr);
    if (code < 0) return library_error("reading the public half of a key", code);
    return PublicKey::from_raw(point.bytes());
}

}  // namespace

Result<KeyPair> KeyPair::from_native(PrivateKeyHandle key) {
    NEXAR_TRY_VALUE(public_key, public_half(key.get()));
    return KeyPair(std::move(key), public_key);
}

Result<KeyPair> KeyPair::generate() {
    auto key = make_handle<PrivateKeyHandle, gnutls_x509_privkey_init>();
    if (!key) return library_error("making a key", GNUTLS_E_MEMORY_ERROR);
    const int code = gnutls_x509_privkey_generate(
        key.get(), GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519), 0);
    if (code < 0) return library_error("making an Ed25519 key", code);
    return from_native(std::move(key));
}

Result<KeyPair> KeyPair::from_pem(const Secret& pem) {
    auto key = make_handle<PrivateKeyHandle, gnutls_x509_privkey_init>();
    if (!key) return library_error("reading a key", GNUTLS_E_MEMORY_ERROR);
    const int code = pem.reveal([&key](std::span<const std::byte> text) {
        const gnutls_datum_t input = datum(text);
        return gnutls_x509_privkey_import_pkcs8(key.get(), &input, GNUTLS_X509_FMT_PEM, nullptr,
                                                GNUTLS_PKCS_PLAIN);
    });
    if (code < 0) {
        return Error(Errc::malformed, "the text is not a private key in PEM (unencrypted PKCS#8)");
    }
    if (gnutls_x509_privkey_get_pk_algorithm(key.get()) != GNUTLS_PK_EDDSA_ED25519) {
        return Error(Errc::malformed,
                     "the private key is not an Ed25519 key, which is the only kind that nexar "
                     "uses");
    }
    return from_native(std::move(key));
}

Result<Secret> KeyPair::to_pem() const {
    OwnedDatum text;
    const int code = gnutls_x509_privkey_export2_pkcs8(key_.get(), GNUTLS_X509_FMT_PEM, nullptr,
                                                       GNUTLS_PKCS_PLAIN, text.out());
    if (code < 0) return library_error("writing a private key as PEM", code);
    Secret pem(text.bytes());
    wipe(text.writable());
    return pem;
}

}  // namespace nexar::security
