#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace nexar::port {

/// An Ed25519 signature (RFC 8032).
using Signature = std::array<std::byte, 64>;

/// An Ed25519 public key as its 32 bytes.
using RawKey = std::array<std::byte, 32>;

/// Signs what members forward for this node, and checks what they forward for others. The key is
/// the one with which this node joined, because that is the one whose hash is in the view.
class Signer {
public:
    virtual ~Signer() = default;

    /// The public half of this node's key.
    virtual const RawKey& key() const noexcept = 0;

    virtual Signature sign(std::span<const std::byte> bytes) const = 0;

    /// True if `key` is the key whose SubjectPublicKeyInfo has this SHA-256 (Member::key_hash), and
    /// its owner signed exactly these bytes. All arguments may come from an attacker.
    virtual bool verify(std::span<const std::byte> bytes, const RawKey& key,
                        const std::array<std::byte, 32>& key_hash,
                        const Signature& signature) const = 0;
};

}  // namespace nexar::port
