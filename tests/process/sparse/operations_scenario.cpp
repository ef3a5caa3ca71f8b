#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "process/p2p/member.hpp"
#include "process/sparse/operations.hpp"
#include "process/sparse/scenarios.hpp"

namespace nexar::testing {

namespace {

/// The most direct connections that the topology allows.
std::size_t most_connections(const SparseShape& shape) {
    const auto degree = routing::Topology::parse(shape.topology).value().degree();
    return degree != 0 ? degree : std::bit_width(static_cast<unsigned>(shape.world - 1));
}

/// The ranks to which a node has direct connections. Throws if it is not connected to somebody, or
/// to somebody directly that is not its neighbour.
std::vector<int> direct_connections(const Node& node, const routing::Graph& graph) {
    const auto me = static_cast<routing::Position>(node.rank());
    std::vector<int> direct;
    for (const PeerLink& peer : node.peers()) {
        const std::string pair = std::to_string(node.rank()) + " to " + std::to_string(peer.rank);
        if (!peer.connected) throw std::runtime_error("not connected: " + pair);
        const bool relayed = peer.hops > 1;
        if (relayed != (peer.via >= 0)) throw std::runtime_error("hops without relay: " + pair);
        if (relayed) continue;
        if (!graph.adjacent(me, static_cast<routing::Position>(peer.rank))) {
            throw std::runtime_error("connected without being neighbours: " + pair);
        }
        direct.push_back(peer.rank);
    }
    return direct;
}

/// Waits until the node is connected to all its neighbours directly: on a busy machine one of these
/// connections may have moved into a tunnel for a while.
std::vector<int> await_neighbours(const Node& node, const routing::Graph& graph) {
    const auto deadline = soon();
    const auto wanted = graph.neighbours(static_cast<routing::Position>(node.rank())).size();
    std::vector<int> direct;
    while ((direct = direct_connections(node, graph)).size() < wanted) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error("a neighbour is not connected directly");
        }
        std::this_thread::yield();
    }
    return direct;
}

}  // namespace

void expect_every_operation_works(const SparseShape& shape, std::uint64_t seed) {
    const routing::Graph graph = graph_of(shape);
    SparseWorld world(shape, [&](Node& node, const Channel& parent) {
        run_every_operation(node, seed);
        parent.say(std::to_string(await_neighbours(node, graph).size()));
        meet(parent);
    });
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
        const std::string direct = hear(world.rank(rank).channel(), kWithin);
        EXPECT_LE(std::stoul(direct), most_connections(shape)) << "at rank " << rank;
    }
    world.await_all("here");
}

}  // namespace nexar::testing
