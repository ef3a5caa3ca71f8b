#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/address.hpp"
#include "base/identity.hpp"

namespace nexar::port {

/// Whether links encrypt and authenticate what they carry. `none` is for isolated fabrics only:
/// anyone on the path can then read and change packets. Both sides must choose it, or the
/// handshake fails. Links to and from a seed are always protected.
enum class Protection : std::uint8_t { full, none };

/// SHA-256 of a public key in its DER form, as security::PublicKey::hash() returns it.
using KeyHash = std::array<std::byte, 32>;

/// A member of this node's cluster: the handshake fails unless the peer proves that it is `node`.
struct MemberTarget {
    NodeId node{};
};

/// The seed of this node's cluster, dialed with this node's credentials.
struct SeedTarget {};

/// A seed that this process wants to join: the process shows no certificate of its own. The seed
/// must show a CA whose key has the hash `ca`; without a hash any CA passes, and the caller must
/// check Link::peer_ca() by other means.
struct JoinTarget {
    std::optional<KeyHash> ca{};
};

/// Where to dial, and whom to expect there.
struct DialTarget {
    Address address{};
    std::variant<MemberTarget, SeedTarget, JoinTarget> peer{};
};

}  // namespace nexar::port
