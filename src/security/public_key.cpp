#include "security/public_key.hpp"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include <algorithm>

#include "security/digest.hpp"

namespace nexar::security {

namespace {

/// SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING of 32 bytes } up to the key itself (RFC 8410
/// section 4). The algorithm must have no parameters, so these bytes never vary.
constexpr std::array<unsigned char, 12> kSpkiPrefix{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                                    0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

}  // namespace

Result<PublicKey> PublicKey::from_spki(std::span<const std::byte> der) {
    const auto prefix = std::as_bytes(std::span(kSpkiPrefix));
    if (der.size() != kSpkiBytes || !std::ranges::equal(der.first(prefix.size()), prefix)) {
        return Error(Errc::malformed,
                     "the public key is not the SubjectPublicKeyInfo of an Ed25519 key, which is "
                     "the only kind that nexar uses");
    }
    PublicKey key;
    std::ranges::copy(der, key.spki_.begin());
    return key;
}

Result<PublicKey> PublicKey::from_raw(std::span<const std::byte> raw) {
    std::array<std::byte, kSpkiBytes> der{};
    const auto prefix = std::as_bytes(std::span(kSpkiPrefix));
    if (raw.size() != der.size() - prefix.size()) {
        return Error(Errc::malformed, "an Ed25519 public key has 32 bytes");
    }
    std::ranges::copy(raw, std::ranges::copy(prefix, der.begin()).out);
    return from_spki(der);
}

PublicKeyHash PublicKey::hash() const {
    return sha256(spki_);
}

}  // namespace nexar::security
