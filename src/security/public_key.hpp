#pragma once

#include <array>
#include <cstddef>
#include <nexar/result.hpp>
#include <span>

namespace nexar::security {

/// SHA-256 of a public key's SubjectPublicKeyInfo (DER).
using PublicKeyHash = std::array<std::byte, 32>;

/// An Ed25519 public key (RFC 8410), kept as its SubjectPublicKeyInfo, which has one form and one
/// size. A value; whether somebody holds the private half is for a signature to show.
class PublicKey {
public:
    static constexpr std::size_t kSpkiBytes = 44;

    /// An Error (malformed) for bytes that are not the SubjectPublicKeyInfo of an Ed25519 key.
    static Result<PublicKey> from_spki(std::span<const std::byte> der);
    /// The same for the 32 bytes of the key alone.
    static Result<PublicKey> from_raw(std::span<const std::byte> raw);

    const std::array<std::byte, kSpkiBytes>& spki() const noexcept { return spki_; }

    PublicKeyHash hash() const;

    friend bool operator==(const PublicKey&, const PublicKey&) noexcept = default;

private:
    std::array<std::byte, kSpkiBytes> spki_{};
};

}  // namespace nexar::security
