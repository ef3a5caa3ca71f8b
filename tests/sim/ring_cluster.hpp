#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "chaos/machine.hpp"
#include "chaos/node.hpp"
#include "link/sim/datagram_net.hpp"
#include "support/exchange.hpp"

namespace nexar::testing {

/// The program of a node of a RingCluster: the test starts its operations.
class RingProgram final : public chaos::Program {
public:
    void viewed(const View& /*view*/) override { ++views_; }
    void left_behind() override {}
    void entered(engine::Context& world, const std::vector<NodeId>& /*nodes*/) override {
        world_ = &world;
    }
    void ended(engine::Operation& /*operation*/) override {}
    void turned(TimePoint /*now*/) override { poked_ = false; }
    std::optional<TimePoint> next_deadline() const override {
        return poked_ ? std::optional(TimePoint{}) : std::nullopt;
    }

    /// The node needs a turn, because an operation was started outside of one.
    void poke() noexcept { poked_ = true; }
    /// nullptr: not yet.
    engine::Context* world() const noexcept { return world_; }
    std::size_t views() const noexcept { return views_; }

private:
    engine::Context* world_ = nullptr;
    std::size_t views_ = 0;
    bool poked_ = false;
};

/// Whole nodes and a seed on virtual time, each connected to the ranks before and after its own
/// only: topology=k_regular:2. QUIC, meshes, overlays, membership and engines are real.
class RingCluster {
public:
    RingCluster(std::uint64_t seed, std::uint32_t nodes);
    ~RingCluster();
    RingCluster(const RingCluster&) = delete;
    RingCluster& operator=(const RingCluster&) = delete;

    /// Waits until every node has the world and is connected to its neighbours.
    bool form();

    /// Starts a message and its receive, which match all others of the two ranks in the order of
    /// these calls.
    Exchange& send(std::uint32_t from, std::uint32_t to, std::size_t bytes);
    bool run_until(const std::function<bool()>& done, Duration at_most) {
        return world_.run_until(done, at_most);
    }
    /// Waits until all messages have ended.
    bool run_until_ended(Duration at_most);
    bool all_arrived() const;

    /// True if every node and the seed still have the first view, with all members.
    bool is_whole();

    std::uint32_t size() const { return static_cast<std::uint32_t>(processes_.size()); }
    std::uint32_t after(std::uint32_t rank) const { return (rank + 1) % size(); }
    std::uint32_t before(std::uint32_t rank) const { return (rank + size() - 1) % size(); }
    chaos::Node& node(std::uint32_t rank) { return *processes_.at(rank)->node; }
    NodeId id_of(std::uint32_t rank) { return node(rank).self().node; }
    /// The link from a node to one of its neighbours; nullptr: none at the moment.
    port::Link* link(std::uint32_t from, std::uint32_t to) {
        return node(from).engine().direct_link(id_of(to));
    }
    /// Gives a node a turn, because one of its links was used outside of one.
    void poke(std::uint32_t rank);

    sim::World& world() noexcept { return world_; }

private:
    struct Process {
        RingProgram program{};
        std::unique_ptr<chaos::Node> node{};
    };

    void add_process(std::uint32_t rank);

    std::uint32_t nodes_;
    sim::World world_;
    sim::DatagramNet net_;
    chaos::StateStore state_{};
    std::vector<std::unique_ptr<Exchange>> messages_{};  // outlive the nodes that use their memory
    std::unique_ptr<chaos::Seed> seed_{};
    std::vector<std::unique_ptr<Process>> processes_{};  // by rank
};

}  // namespace nexar::testing
