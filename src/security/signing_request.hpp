#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// A request of PKCS#10 (RFC 2986): a public key, signed by its private half. It carries a binding,
/// bytes that both ends of one connection took from its TLS exporter, so that a request which was
/// seen elsewhere is worth nothing. It names nobody: who gets which identity is the CA's business.
class SigningRequest {
public:
    static constexpr std::size_t kBindingBytes = 32;
    static constexpr std::size_t kMaxBytes = 1024;

    static Result<SigningRequest> create(const KeyPair& key,
                                         std::span<const std::byte, kBindingBytes> binding);

    /// An Error (malformed, limit_exceeded, unauthenticated) when these bytes are no request, are
    /// too many, were not signed with the key that they carry, or are bound to something else.
    static Result<SigningRequest> from_der(std::span<const std::byte> der,
                                           std::span<const std::byte, kBindingBytes> binding);

    const std::vector<std::byte>& der() const noexcept { return der_; }
    const PublicKey& public_key() const noexcept { return public_key_; }

private:
    SigningRequest(std::vector<std::byte> der, const PublicKey& public_key) noexcept
        : der_(std::move(der)), public_key_(public_key) {}

    std::vector<std::byte> der_;
    PublicKey public_key_;
};

}  // namespace nexar::security
