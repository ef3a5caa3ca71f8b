#include <fmt/format.h>

#include <nexar/node.hpp>

#include "runtime/node_body.hpp"
#include "runtime/own_cluster.hpp"

namespace nexar {

namespace {

constexpr int kMostNodes = 256;
constexpr Duration kFormTime = std::chrono::seconds(60);

}  // namespace

std::vector<Node> local_cluster(int size, const NodeOptions& options) {
    if (size < 1 || size > kMostNodes) {
        throw Error(Errc::invalid_argument,
                    fmt::format("a local cluster has 1 to {} nodes, not {}", kMostNodes, size),
                    {.operation = "local_cluster"});
    }
    auto cluster = detail::OwnCluster::make(runtime::HostServices::of_this_machine()).value();
    const auto loop = runtime::make_loop(options).value();
    std::vector<Node> nodes;
    std::vector<std::shared_ptr<detail::NodeBody>> bodies;
    for (int rank = 0; rank < size; ++rank) {
        auto body =
            cluster
                .open(loop, {.listen = Address::parse("127.0.0.1:0").value(), .options = options})
                .value();
        nodes.emplace_back(body);
        bodies.push_back(std::move(body));
    }
    for (const auto& body : bodies) body->form(cluster.view());
    for (const auto& body : bodies) body->wait_formed(body->now() + kFormTime).value();
    return nodes;
}

}  // namespace nexar
