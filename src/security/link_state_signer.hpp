#pragma once

#include <nexar/result.hpp>

#include "port/signer.hpp"
#include "security/gnutls_handle.hpp"
#include "security/key_pair.hpp"

namespace nexar::security {

/// Signs link states with the key of a node, and verifies those of others. Keeps no state: several
/// threads may call it concurrently.
class LinkStateSigner final : public port::Signer {
public:
    /// Copies the key, which must be the one with which the node joined: after a renewal with
    /// another key, the view still has the hash of the first one.
    static Result<LinkStateSigner> create(const KeyPair& key);

    const port::RawKey& key() const noexcept override { return raw_key_; }
    port::Signature sign(std::span<const std::byte> bytes) const override;
    bool verify(std::span<const std::byte> bytes, const port::RawKey& key,
                const std::array<std::byte, 32>& key_hash,
                const port::Signature& signature) const override;

private:
    using SigningHandle = Handle<gnutls_privkey_t, gnutls_privkey_deinit>;

    LinkStateSigner(SigningHandle key, const PublicKey& public_key);

    SigningHandle key_;
    port::RawKey raw_key_{};
};

}  // namespace nexar::security
