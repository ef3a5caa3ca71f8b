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

/// Whom we want to talk to: any node of the cluster, or one.
struct Expectation {
    ClusterId cluster{};
    std::optional<NodeId> node{};
    /// It must be a seed, whichever.
    bool seed = false;
};

/// What a peer is measured by.
struct PeerRules {
    const Credentials& ours;
    Expectation expected{};
    Role peer_role = Role::server;
    WallTime now{};
};

/// Whether what a peer showed makes it the node that we expect, cheap checks first: one certificate
/// of our kind of key and signature, signed by the cluster CA and by nobody else, in its time, not
/// a CA's, for TLS in this role, with one well-formed name, of our cluster, of the expected node.
///
/// That the peer holds the key is for the CertificateVerify message to show.
Checked<Identity> check_peer(const ShownCertificates& shown, const PeerRules& rules);

/// What a seed is measured by when there are no credentials yet.
struct SeedRules {
    /// Of the CA's public key. None: the seed is believed only after it has proved to know the
    /// job's secret, see JobProof.
    std::optional<PublicKeyHash> ca{};
    WallTime now{};
};

struct SeenSeed {
    Identity identity{};
    Certificate ca;
};

/// Whether what a peer showed makes it the seed of the cluster whose CA it shows, which is the one
/// that we were told of. A member's certificate is not enough: it would be handed tokens.
Checked<SeenSeed> check_seed(const ShownCertificates& shown, const SeedRules& rules);

}  // namespace nexar::security
