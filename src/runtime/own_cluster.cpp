#include "runtime/own_cluster.hpp"

#include <chrono>
#include <utility>

#include "base/try.hpp"
#include "security/random_id.hpp"

namespace nexar::detail {

OwnCluster::OwnCluster(std::unique_ptr<const security::ClusterCa> ca, security::WallTime now)
    : ca_(std::move(ca)), now_(now) {}

Result<OwnCluster> OwnCluster::make() {
    const security::WallTime now = std::chrono::system_clock::now();
    NEXAR_TRY_VALUE(cluster, security::new_cluster_id());
    NEXAR_TRY_VALUE(ca, security::ClusterCa::create(cluster, now));
    return OwnCluster(std::make_unique<const security::ClusterCa>(std::move(ca)), now);
}

Result<std::shared_ptr<NodeBody>> OwnCluster::open(std::shared_ptr<runtime::Loop> loop,
                                                   NodeBody::Setup setup) {
    NEXAR_TRY_VALUE(key, security::KeyPair::generate());
    NEXAR_TRY_VALUE(node, security::new_node_id());
    const Identity identity{.cluster = ca_->cluster(), .node = node, .incarnation = Incarnation(1)};
    NEXAR_TRY_VALUE(certificate,
                    ca_->issue({.public_key = key.public_key(), .identity = identity}, now_));
    NEXAR_TRY_VALUE(credentials,
                    security::Credentials::create(std::move(key), certificate, ca_->certificate()));
    setup.credentials = std::move(credentials);
    NEXAR_TRY_VALUE(body, NodeBody::open(std::move(loop), setup));
    view_.members.push_back({.node = identity.node,
                             .incarnation = identity.incarnation,
                             .rank = Rank(static_cast<std::uint32_t>(view_.members.size())),
                             .addresses = {body->address()}});
    return body;
}

}  // namespace nexar::detail
