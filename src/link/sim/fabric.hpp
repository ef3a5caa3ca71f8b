#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "link/sim/carrier.hpp"
#include "link/sim/options.hpp"

namespace nexar::sim {

/// Nodes with simulated links between them: level 1 of the simulator. Its links keep the contract
/// of port::Link under any weather and any failure. Where the contract leaves a choice, each run
/// may choose differently.
///
/// The world must outlive it. Weather, partitions and failures may be changed at any time.
class Fabric {
public:
    explicit Fabric(World& world, const FabricOptions& options = {});
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    World& world() const noexcept { return *world_; }
    const FabricOptions& options() const noexcept { return options_; }

    /// Adds a node. No node with the same id may be alive; after kill() the id may be used again.
    Carrier& add_node(const Identity& identity);
    /// An identity for tests and benches: the same cluster for all, a different node per index.
    static Identity identity(std::uint64_t index, std::uint64_t incarnation = 1);
    /// The live node with this id, or null.
    Carrier* find(const NodeId& node) noexcept;

    /// Links that at least one end has not forgotten, including those of killed nodes.
    std::size_t links() const noexcept { return wires_.size(); }

    /// Sets the weather of all present and future links; replaces settings of pairs.
    void set_weather(const LinkWeather& weather);
    /// Sets the weather from `from` to `to`, also of future links.
    void set_weather(const NodeId& from, const NodeId& to, const LinkWeather& weather);

    /// Nothing from `from` arrives at `to` until heal(); with Way::both nothing in the other
    /// direction either. Lanes and streams are held, datagrams are lost. A side that receives
    /// nothing for the idle timeout gives up the link.
    void partition(const NodeId& from, const NodeId& to, Way way = Way::both);
    void heal(const NodeId& from, const NodeId& to, Way way = Way::both);
    void heal_all();

    /// Breaks the link now: a random prefix of the bytes in flight on each lane and stream still
    /// arrives, then both ends get Down (link_closed), each at a random time within `spread`.
    void break_link(Carrier& node, port::LinkId link, Duration spread = kBreakSpread);
    /// The same after `node` has sent `bytes` more bytes of lanes and streams on it.
    void break_link_after(Carrier& node, port::LinkId link, std::uint64_t bytes);

    /// Kills the process: it gets no more turns or events, and a random prefix of its bytes in
    /// flight arrives. Its peers get Down (link_closed) within `detection` or, without one, after
    /// they have received nothing for the idle timeout (timed_out). See also
    /// FabricOptions::killed_nodes_refuse.
    void kill(Carrier& node, std::optional<Duration> detection);

    static constexpr Duration kBreakSpread = std::chrono::milliseconds(1);

private:
    friend class Carrier;
    friend class Link;

    struct Wire {
        std::unique_ptr<Link> dialer{};
        std::unique_ptr<Link> acceptor{};  // null: there was no such node
    };
    struct Route {
        std::optional<LinkWeather> weather{};
        bool blocked = false;
    };
    using RouteKey = std::pair<NodeId, NodeId>;  // from, to

    port::LinkId dial(Carrier& from, const NodeId& to);
    void apply_routes(Link& link);
    void apply_routes_to_all();
    void break_wire(Link& link, Duration spread);
    void set_blocked(const NodeId& from, const NodeId& to, bool blocked);
    /// True if nothing from `from` arrives at `to` now.
    bool cut(const NodeId& from, const NodeId& to) const;
    void reap();

    World* world_;
    FabricOptions options_;
    std::vector<std::unique_ptr<Carrier>> nodes_;
    std::map<NodeId, Carrier*> alive_;
    std::map<std::uint64_t, Wire> wires_;
    std::map<RouteKey, Route> routes_;
    std::uint64_t next_wire_ = 1;
    std::vector<std::uint64_t> forgotten_;  // wires with a forgotten end
};

}  // namespace nexar::sim
