#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/pool_profile.hpp"
#include "link/sim/datagram_net.hpp"
#include "link/sim/fabric.hpp"
#include "support/engine_node.hpp"
#include "support/quic_pair.hpp"

namespace nexar::testing {

/// A set of engines that are all members of two communicators. A subclass connects them on one
/// level of the simulator: links or datagrams.
class EngineCluster {
public:
    static constexpr std::size_t kContexts = 2;

    EngineCluster(const EngineCluster&) = delete;
    EngineCluster& operator=(const EngineCluster&) = delete;

    std::size_t size() const noexcept { return nodes_.size(); }
    sim::World& world() noexcept { return world_; }
    EngineNode& node(std::size_t i) noexcept { return *nodes_[i]; }
    engine::Context& context(std::size_t node, std::size_t number) noexcept {
        return *contexts_[node * kContexts + number];
    }

    const NodeId& member(std::size_t i) const noexcept { return members_[i]; }

    /// The most buffer memory that the engines have held for unexpected messages.
    std::size_t pool_bytes() const {
        return static_cast<std::size_t>(pool_.statistics().total.bytes_high_water);
    }

    void close() {
        for (const auto& node : nodes_) {
            node->engine().close();
            node->settle();
        }
        const bool idle = world_.run_until(
            [&] { return std::ranges::all_of(nodes_, [](auto& n) { return n->engine().idle(); }); },
            std::chrono::seconds(60));
        NEXAR_ASSERT(idle, "a closed cluster must become idle");
    }

protected:
    explicit EngineCluster(std::uint64_t seed) : world_(seed), pool_(PoolProfile::inference()) {}
    ~EngineCluster() = default;

    /// Destroys the nodes, which must go before the carriers that they drive.
    void end() { nodes_.clear(); }

    /// Adds the node of the next rank.
    void add(sim::NodeCarrier& carrier, const NodeId& member,
             const engine::EngineOptions& options = {}) {
        nodes_.push_back(std::make_unique<EngineNode>(carrier, pool_, options));
        members_.push_back(member);
    }

    void add_contexts() {
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::uint64_t id = 1; id <= kContexts; ++id) {
                contexts_.push_back(&nodes_[i]->engine().add_context(
                    ContextId(id), members_, Rank(static_cast<std::uint32_t>(i))));
            }
        }
    }

    bool run_until_connected() {
        return world_.run_until(
            [&] {
                return std::ranges::all_of(
                    nodes_, [&](const auto& node) { return node->links_up() + 1 >= size(); });
            },
            std::chrono::seconds(60));
    }

private:
    sim::World world_;
    BufferPool pool_;
    std::vector<std::unique_ptr<EngineNode>> nodes_;
    std::vector<engine::Context*> contexts_;
    std::vector<NodeId> members_;
};

/// A cluster on simulated links. The seed determines the weather.
class SimCluster : public EngineCluster {
public:
    SimCluster(std::uint64_t seed, std::size_t nodes, const engine::EngineOptions& options = {})
        : EngineCluster(seed), fabric_(world(), fabric_options(seed)) {
        for (std::size_t i = 0; i < nodes; ++i) {
            const Identity identity = sim::Fabric::identity(i);
            carriers_.push_back(&fabric_.add_node(identity));
            add(*carriers_.back(), identity.node, options);
        }
        add_contexts();
    }

    ~SimCluster() { end(); }

    sim::Fabric& fabric() noexcept { return fabric_; }
    sim::Carrier& carrier(std::size_t i) noexcept { return *carriers_[i]; }

    /// In each pair the higher rank dials.
    bool connect() {
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) carriers_[i]->dial(member(j));
        }
        return run_until_connected();
    }

private:
    static sim::FabricOptions fabric_options(std::uint64_t seed) {
        Random random(seed * 7 + 1);
        sim::FabricOptions options;
        options.weather.delay = Duration(random.below(2'000'000));
        options.weather.jitter = Duration(random.below(5'000'000));
        options.weather.largest_piece = 1 + random.below(random.chance(0.5) ? 3'000 : 70'000);
        options.weather.cuts = random.chance(0.5) ? 0.5 : 0;
        return options;
    }

    sim::Fabric fabric_;
    std::vector<sim::Carrier*> carriers_;
};

/// A cluster on real QUIC connections over simulated datagrams. The seed determines the weather,
/// which begins once the links are up.
class QuicCluster final : public EngineCluster {
public:
    QuicCluster(std::uint64_t seed, std::size_t nodes, const engine::EngineOptions& options = {})
        : EngineCluster(seed), net_(world()) {
        net_.weather.jitter = std::chrono::microseconds(50);
        for (std::size_t i = 0; i < nodes; ++i) {
            hosts_.push_back(&net_.add_host(sim::DatagramNet::address(static_cast<unsigned>(i + 1)),
                                            QuicPair::endpoint_options(QuicPair::node(i))));
            add(*hosts_.back(), TestCluster::node_id(i), options);
        }
        add_contexts();
        Random random(seed * 7 + 1);
        weather_.delay = Duration(random.below(1'000'000));
        weather_.jitter = Duration(random.below(1'000'000));
        weather_.loss = random.chance(0.5) ? 0.02 * random.uniform() : 0;
        weather_.duplicate = random.chance(0.5) ? 0.05 * random.uniform() : 0;
        weather_.corrupt = random.chance(0.3) ? 0.01 * random.uniform() : 0;
        weather_.mtu = random.chance(0.5) ? 65'535 : 1'500;
    }

    ~QuicCluster() { end(); }

    sim::DatagramNet& net() noexcept { return net_; }

    /// In each pair the higher rank dials.
    bool connect() {
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const auto dialed = hosts_[i]->dial(
                    hosts_[j]->address(), {.cluster = QuicPair::cluster().id(), .node = member(j)});
                if (!dialed) return false;
                node(i).settle();
            }
        }
        const bool connected = run_until_connected();
        net_.weather = weather_;
        return connected;
    }

private:
    sim::DatagramNet net_;
    sim::DatagramWeather weather_{};
    std::vector<sim::DatagramHost*> hosts_;
};

}  // namespace nexar::testing
