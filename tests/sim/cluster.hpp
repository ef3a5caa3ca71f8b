#pragma once

#include <memory>
#include <vector>

#include "base/pool_profile.hpp"
#include "link/sim/fabric.hpp"
#include "support/engine_node.hpp"

namespace nexar::testing {

/// Engines on simulated links, all members of two communicators.
class SimCluster {
public:
    SimCluster(std::uint64_t seed, std::size_t nodes, const engine::EngineOptions& options = {})
        : world_(seed), fabric_(world_, fabric_options(seed)), pool_(PoolProfile::inference()) {
        std::vector<NodeId> members;
        for (std::size_t i = 0; i < nodes; ++i) {
            const Identity identity = sim::Fabric::identity(i);
            members.push_back(identity.node);
            nodes_.push_back(
                std::make_unique<EngineNode>(fabric_.add_node(identity), pool_, options));
        }
        for (std::size_t i = 0; i < nodes; ++i) {
            for (std::uint64_t id = 1; id <= 2; ++id) {
                contexts_.push_back(&nodes_[i]->engine().add_context(
                    ContextId(id), members, Rank(static_cast<std::uint32_t>(i))));
            }
        }
        members_ = members;
    }

    std::size_t size() const noexcept { return nodes_.size(); }
    sim::World& world() noexcept { return world_; }
    sim::Fabric& fabric() noexcept { return fabric_; }
    EngineNode& node(std::size_t i) noexcept { return *nodes_[i]; }
    sim::Carrier& carrier(std::size_t i) noexcept {
        return static_cast<sim::Carrier&>(nodes_[i]->carrier());
    }
    engine::Context& context(std::size_t node, std::size_t number) noexcept {
        return *contexts_[node * 2 + number];
    }

    /// What the engines keep of messages that nobody asked for, in buffers.
    std::size_t pool_bytes() const {
        return static_cast<std::size_t>(pool_.statistics().total.bytes_high_water);
    }

    /// Those of higher rank dial.
    bool connect() {
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) carrier(i).dial(members_[j]);
        }
        return world_.run_until(
            [&] {
                for (const auto& node : nodes_) {
                    if (node->links_up() + 1 < size()) return false;
                }
                return true;
            },
            std::chrono::seconds(10));
    }

    void close() {
        for (const auto& node : nodes_) {
            node->engine().close();
            node->settle();
        }
        const bool idle = world_.run_until(
            [&] {
                for (const auto& node : nodes_) {
                    if (!node->engine().idle()) return false;
                }
                return true;
            },
            std::chrono::seconds(60));
        NEXAR_ASSERT(idle, "a cluster that is closed becomes idle");
    }

private:
    /// Every seed has its own weather.
    static sim::FabricOptions fabric_options(std::uint64_t seed) {
        Random random(seed * 7 + 1);
        sim::FabricOptions options;
        options.weather.delay = Duration(random.below(2'000'000));
        options.weather.jitter = Duration(random.below(5'000'000));
        options.weather.largest_piece = 1 + random.below(random.chance(0.5) ? 3'000 : 70'000);
        options.weather.cuts = random.chance(0.5) ? 0.5 : 0;
        return options;
    }

    sim::World world_;
    sim::Fabric fabric_;
    BufferPool pool_;
    std::vector<std::unique_ptr<EngineNode>> nodes_;
    std::vector<engine::Context*> contexts_;
    std::vector<NodeId> members_;
};

}  // namespace nexar::testing
