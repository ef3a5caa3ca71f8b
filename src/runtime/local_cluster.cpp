#include <fmt/format.h>

#include <nexar/node.hpp>

#include "runtime/node_body.hpp"
#include "security/cluster_ca.hpp"
#include "security/random_id.hpp"

namespace nexar {

namespace {

constexpr int kMostNodes = 256;
constexpr Duration kFormTime = std::chrono::seconds(60);

std::shared_ptr<const security::Credentials> new_credentials(const security::ClusterCa& ca,
                                                             security::WallTime now) {
    auto key = security::KeyPair::generate().value();
    const Identity identity{.cluster = ca.cluster(),
                            .node = security::new_node_id().value(),
                            .incarnation = Incarnation(1)};
    const auto certificate =
        ca.issue({.public_key = key.public_key(), .identity = identity}, now).value();
    return security::Credentials::create(std::move(key), certificate, ca.certificate()).value();
}

}  // namespace

std::vector<Node> local_cluster(int size, const NodeOptions& options) {
    if (size < 1 || size > kMostNodes) {
        throw Error(Errc::invalid_argument,
                    fmt::format("a local cluster has 1 to {} nodes, not {}", kMostNodes, size),
                    {.operation = "local_cluster"});
    }
    const security::WallTime now = std::chrono::system_clock::now();
    const auto ca = security::ClusterCa::create(security::new_cluster_id().value(), now).value();
    const auto loop = runtime::make_loop(options).value();
    std::vector<Node> nodes;
    std::vector<std::shared_ptr<detail::NodeBody>> bodies;
    View view{.epoch = Epoch(1)};
    for (int rank = 0; rank < size; ++rank) {
        const auto credentials = new_credentials(ca, now);
        auto body = detail::NodeBody::open(loop, {.credentials = credentials,
                                                  .listen = Address::parse("127.0.0.1:0").value(),
                                                  .options = options})
                        .value();
        view.members.push_back({.node = credentials->identity().node,
                                .incarnation = credentials->identity().incarnation,
                                .rank = Rank(static_cast<std::uint32_t>(rank)),
                                .addresses = {body->address()}});
        nodes.emplace_back(body);
        bodies.push_back(std::move(body));
    }
    for (const auto& body : bodies) body->form(view);
    for (const auto& body : bodies) body->wait_formed(body->now() + kFormTime).value();
    return nodes;
}

}  // namespace nexar
