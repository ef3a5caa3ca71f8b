#include "runtime/own_cluster.hpp"

#include <utility>

#include "base/try.hpp"
#include "security/link_state_signer.hpp"

namespace nexar::detail {

OwnCluster::OwnCluster(std::unique_ptr<const security::ClusterCa> ca,
                       runtime::HostServices services)
    : ca_(std::move(ca)), services_(std::move(services)) {}

Result<OwnCluster> OwnCluster::make(runtime::HostServices services) {
    NEXAR_TRY_VALUE(cluster, services.new_cluster_id());
    NEXAR_TRY_VALUE(key, services.new_key());
    NEXAR_TRY_VALUE(ca,
                    security::ClusterCa::create(cluster, std::move(key), services.wall_clock()));
    return OwnCluster(std::make_unique<const security::ClusterCa>(std::move(ca)),
                      std::move(services));
}

Result<std::shared_ptr<NodeBody>> OwnCluster::open(std::shared_ptr<runtime::Loop> loop,
                                                   NodeBody::Setup setup) {
    NEXAR_TRY_VALUE(key, services_.new_key());
    NEXAR_TRY_VALUE(node, services_.new_node_id());
    const Identity identity{.cluster = ca_->cluster(), .node = node, .incarnation = Incarnation(1)};
    NEXAR_TRY_VALUE(certificate, ca_->issue({.public_key = key.public_key(), .identity = identity},
                                            services_.wall_clock()));
    NEXAR_TRY_VALUE(signer, security::LinkStateSigner::create(key));
    setup.signer = std::make_shared<security::LinkStateSigner>(std::move(signer));
    const security::PublicKeyHash key_hash = key.public_key_hash();
    NEXAR_TRY_VALUE(credentials,
                    security::Credentials::create(std::move(key), certificate, ca_->certificate()));
    setup.credentials = std::move(credentials);
    setup.services = services_;
    NEXAR_TRY_VALUE(body, NodeBody::open(std::move(loop), setup));
    view_.members.push_back({.node = identity.node,
                             .incarnation = identity.incarnation,
                             .rank = Rank(static_cast<std::uint32_t>(view_.members.size())),
                             .addresses = {body->address()},
                             .key_hash = key_hash});
    view_.next_rank = Rank(static_cast<std::uint32_t>(view_.members.size()));
    return body;
}

}  // namespace nexar::detail
