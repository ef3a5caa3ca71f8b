#include "security/link_state_signer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

Result<LinkStateSigner> LinkStateSigner::create(const KeyPair& key) {
    auto handle = make_handle<SigningHandle, gnutls_privkey_init>();
    if (!handle) return library_error("preparing a key for signing", GNUTLS_E_MEMORY_ERROR);
    const int code =
        gnutls_privkey_import_x509(handle.get(), key.native(), GNUTLS_PRIVKEY_IMPORT_COPY);
    if (code < 0) return library_error("preparing a key for signing", code);
    return LinkStateSigner(std::move(handle), key.public_key());
}

LinkStateSigner::LinkStateSigner(SigningHandle key, const PublicKey& public_key)
    : key_(std::move(key)) {
    std::ranges::copy(std::span(public_key.spki()).last(raw_key_.size()), raw_key_.begin());
}

port::Signature LinkStateSigner::sign(std::span<const std::byte> bytes) const {
    const gnutls_datum_t content = datum(bytes);
    OwnedDatum signed_content;
    const int code = gnutls_privkey_sign_data2(key_.get(), GNUTLS_SIGN_EDDSA_ED25519, 0, &content,
                                               signed_content.out());
    port::Signature signature{};
    NEXAR_ASSERT(code >= 0 && signed_content.bytes().size() == signature.size(),
                 "signing bytes in memory with a valid Ed25519 key cannot fail");
    std::ranges::copy(signed_content.bytes(), signature.begin());
    return signature;
}

bool LinkStateSigner::verify(std::span<const std::byte> bytes, const port::RawKey& key,
                             const std::array<std::byte, 32>& key_hash,
                             const port::Signature& signature) const {
    const auto claimed = PublicKey::from_raw(key);
    if (!claimed || claimed->hash() != key_hash) return false;
    const auto handle = make_handle<PublicKeyHandle, gnutls_pubkey_init>();
    if (!handle) return false;
    const gnutls_datum_t point = datum(key);
    if (gnutls_pubkey_import_ecc_raw(handle.get(), GNUTLS_ECC_CURVE_ED25519, &point, nullptr) < 0) {
        return false;
    }
    const gnutls_datum_t content = datum(bytes);
    const gnutls_datum_t claimed_signature = datum(signature);
    return gnutls_pubkey_verify_data2(handle.get(), GNUTLS_SIGN_EDDSA_ED25519, 0, &content,
                                      &claimed_signature) >= 0;
}

}  // namespace nexar::security
