#pragma once

#include <array>
#include <cstddef>
#include <nexar/result.hpp>
#include <span>

namespace nexar::security {

/// SHA-256 of a public key's SubjectPublicKeyInfo (DER).
using PublicKeyHash = std::array<std::byte, 32>;

/// An Ed25519 public key (RFC 8410), stored as its SubjectPublicKeyInfo, which has exactly one form
/// and size. Only a signature proves that somebody holds the private half.
class PublicKey {
public:
    static constexpr std::size_t kSpkiBytes = 44;

    /// Fails with malformed if the bytes are not the SubjectPublicKeyInfo of an Ed25519 key.
    static Result<PublicKey> from_spki(std::span<const std::byte> der);
    /// The same for the 32 bytes of the key itself.
    static Result<PublicKey> from_raw(std::span<const std::byte> raw);

    const std::array<std::byte, kSpkiBytes>& spki() const noexcept { return spki_; }

    PublicKeyHash hash() const;

    friend bool operator==(const PublicKey&, const PublicKey&) noexcept = default;

private:
    std::array<std::byte, kSpkiBytes> spki_{};
};

}  // namespace nexar::security
