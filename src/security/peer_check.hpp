#pragma once

#include <cstdint>
#include <optional>

#include "base/identity.hpp"
#include "security/certificate_message.hpp"
#include "security/credentials.hpp"
#include "security/refusal.hpp"
#include "security/wall_time.hpp"

namespace nexar::security {

enum class Role : std::uint8_t { client, server };

/// The peer that we expect: any node of the cluster, or a specific one.
struct Expectation {
    ClusterId cluster{};
    std::optional<NodeId> node{};
    /// The peer must be a seed, whichever one.
    bool seed = false;
};

/// What a peer is checked against.
struct PeerRules {
    const Credentials& ours;
    Expectation expected{};
    Role peer_role = Role::server;
    WallTime now{};
};

/// Checks that the certificates a peer presented make it the node that we expect, cheap checks
/// first: its certificate uses Ed25519, was signed directly by the cluster CA, is valid now, is not
/// that of a CA, allows TLS in this role, and has one well-formed name, of our cluster and of the
/// expected node.
///
/// The CertificateVerify message must still prove that the peer holds the key.
Checked<Identity> check_peer(const ShownCertificates& shown, const PeerRules& rules);

/// What a seed is checked against as long as we have no credentials.
struct SeedRules {
    /// The hash of the CA's public key. If absent, the seed is trusted only after it has proved
    /// that it knows the job secret, see JobSecret.
    std::optional<PublicKeyHash> ca{};
    WallTime now{};
};

struct SeenSeed {
    Identity identity{};
    Certificate ca;
};

/// Checks that the certificates a peer presented make it a seed of the cluster whose CA it
/// presents, and that this is the CA we know about. The certificate of an ordinary member is not
/// enough, because a joiner sends its token to the seed.
Checked<SeenSeed> check_seed(const ShownCertificates& shown, const SeedRules& rules);

}  // namespace nexar::security
