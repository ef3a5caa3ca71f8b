#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/secret.hpp"
#include "security/gnutls_handle.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// An Ed25519 private key with its public half. Move-only: a key has one owner. Several threads may
/// call const members concurrently.
class KeyPair {
public:
    /// Generates a key with the random source of the operating system.
    static Result<KeyPair> generate();

    /// Reads unencrypted PKCS#8. Fails with malformed; the error does not quote the text.
    static Result<KeyPair> from_pem(const Secret& pem);

    Result<Secret> to_pem() const;

    const PublicKey& public_key() const noexcept { return public_key_; }
    PublicKeyHash public_key_hash() const { return public_key_.hash(); }

    /// For GnuTLS calls that sign; valid as long as this object.
    gnutls_x509_privkey_t native() const noexcept { return key_.get(); }

private:
    KeyPair(PrivateKeyHandle key, const PublicKey& public_key) noexcept
        : key_(std::move(key)), public_key_(public_key) {}

    static Result<KeyPair> from_native(PrivateKeyHandle key);

    PrivateKeyHandle key_;
    PublicKey public_key_;
};

}  // namespace nexar::security
