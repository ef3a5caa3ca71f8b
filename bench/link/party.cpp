#include "party.hpp"

#include <chrono>
#include <utility>

#include "security/cluster_ca.hpp"
#include "security/key_pair.hpp"
#include "security/random_id.hpp"

namespace nexar::bench {

namespace {

security::Certificate issue(const security::ClusterCa& ca, const security::KeyPair& key) {
    const Identity identity{.cluster = ca.cluster(),
                            .node = security::new_node_id().value(),
                            .incarnation = Incarnation(1)};
    return ca
        .issue({.public_key = key.public_key(), .identity = identity},
               std::chrono::system_clock::now())
        .value();
}

}  // namespace

Party make_party() {
    const auto ca = security::ClusterCa::create(security::new_cluster_id().value(),
                                                std::chrono::system_clock::now())
                        .value();
    auto client_key = security::KeyPair::generate().value();
    auto server_key = security::KeyPair::generate().value();
    const auto client_certificate = issue(ca, client_key);
    const auto server_certificate = issue(ca, server_key);
    Party party;
    party.cluster = ca.cluster();
    party.server_certificate = server_certificate.der();
    party.server_key = server_key.to_pem().value();
    party.client =
        security::Credentials::create(std::move(client_key), client_certificate, ca.certificate())
            .value();
    party.server =
        security::Credentials::create(std::move(server_key), server_certificate, ca.certificate())
            .value();
    return party;
}

}  // namespace nexar::bench
