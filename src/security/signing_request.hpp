#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// A PKCS#10 request (RFC 2986): a public key, signed with its private half. It contains a binding,
/// bytes that both ends of a connection derive from its TLS exporter, so that nobody can use a
/// request that was seen on another connection. It contains no name: the CA decides who gets which
/// identity.
class SigningRequest {
public:
    static constexpr std::size_t kBindingBytes = 32;
    static constexpr std::size_t kMaxBytes = 1024;

    static Result<SigningRequest> create(const KeyPair& key,
                                         std::span<const std::byte, kBindingBytes> binding);

    /// Fails with malformed, limit_exceeded or unauthenticated if the bytes are not a request, are
    /// too many, were not signed with the key they contain, or are bound to another connection.
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
