#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chaos/machine.hpp"
#include "chaos/node.hpp"
#include "routing/graph.hpp"

namespace nexar::testing {

struct SparseShape {
    std::size_t nodes = 0;
    std::string topology{};
    std::uint64_t seed = 1;
};

/// Whole nodes of a sparse cluster and their seed on virtual time, with real QUIC connections. The
/// node of rank i is number i. Operations are those of the caller, who owns their memory; it must
/// outlive this object.
class SparseCluster {
public:
    explicit SparseCluster(const SparseShape& shape);
    ~SparseCluster();
    SparseCluster(const SparseCluster&) = delete;
    SparseCluster& operator=(const SparseCluster&) = delete;

    /// Starts the seed and all nodes. Returns the time until every node is in the world of all and
    /// connected to all its neighbours; nullopt if that takes longer than `at_most`.
    std::optional<Duration> form(Duration at_most);

    std::size_t size() const noexcept { return processes_.size(); }
    sim::World& world() noexcept { return world_; }
    sim::DatagramNet& net() noexcept { return net_; }
    /// The edges by the rule of the topology.
    const routing::Graph& graph() const noexcept { return graph_; }
    /// Not valid for a node that was killed.
    chaos::Node& node(std::size_t rank);
    /// The communicator of all.
    engine::Context& context(std::size_t rank);

    /// Calls `what` with the engine of a node, in its next turn.
    void post(std::size_t rank, std::function<void(engine::Engine&)> what);
    /// Makes a communicator of these ranks, in this order, on all of them. Element i is that of
    /// rank i in it.
    std::vector<engine::Context*> make_communicator(std::uint64_t id,
                                                    std::span<const std::size_t> ranks);
    /// Kills the process of a node; its machine refuses packets.
    void kill(std::size_t rank);

    /// Called with every operation that ends.
    std::function<void(engine::Operation&)> on_done{};

    /// Pairs of ranks, the lower one first, between which datagrams have travelled, without relays.
    std::set<std::pair<std::size_t, std::size_t>> connections() const;
    /// Bytes that one node has sent directly to another one, or could not deliver.
    std::uint64_t bytes_between(std::size_t from, std::size_t to) const;

private:
    class Process;

    std::size_t at(std::size_t from_machine, std::size_t to_machine) const {
        return from_machine * (size() + 1) + to_machine;
    }
    void note(const sim::Datagram& datagram);
    void start_seed();
    void start(std::size_t machine);
    bool formed();

    SparseShape shape_;
    sim::World world_;
    sim::DatagramNet net_;
    Config settings_;
    routing::Graph graph_;
    std::unique_ptr<chaos::Seed> seed_;
    std::string join_;
    std::vector<std::unique_ptr<Process>> processes_;  // by rank
    std::vector<std::uint64_t> bytes_;                 // by machines; 0 is that of the seed
    std::size_t formed_ = 0;                           // the first ranks, which are known to have
};

}  // namespace nexar::testing
