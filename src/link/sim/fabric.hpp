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

/// Nodes with simulated links between them: level 1 of the simulator. Keeps what port::Link
/// promises, to the letter, under any weather and any failure; of what it leaves open, each run
/// takes other possibilities.
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

    /// A node; one of that node id must not be alive. After kill() the same id may come again.
    Carrier& add_node(const Identity& identity);
    /// An identity for tests and benches: the same cluster for all, another node for each index.
    static Identity identity(std::uint64_t index, std::uint64_t incarnation = 1);
    /// The one that is alive; null when there is none.
    Carrier* find(const NodeId& node) noexcept;

    /// Links that some end has not forgotten, those of killed nodes included.
    std::size_t links() const noexcept { return wires_.size(); }

    /// Of all links, those to come included; what was set for a pair is forgotten.
    void set_weather(const LinkWeather& weather);
    /// Of what `from` sends to `to`, on links to come too.
    void set_weather(const NodeId& from, const NodeId& to, const LinkWeather& weather);

    /// Nothing that `from` sends arrives at `to` until heal(), and with Way::both nothing the other
    /// way either. Lanes and streams are held, datagrams lost. A side that hears nothing for the
    /// idle timeout gives the link up.
    void partition(const NodeId& from, const NodeId& to, Way way = Way::both);
    void heal(const NodeId& from, const NodeId& to, Way way = Way::both);
    void heal_all();

    /// The link breaks now: of each lane and stream some prefix of what is on the way arrives yet,
    /// then both ends get Down (link_closed), each at some time within `spread`.
    void break_link(Carrier& node, port::LinkId link, Duration spread = kBreakSpread);
    /// The same when `node` has sent so many more bytes of lanes and streams on it.
    void break_link_after(Carrier& node, port::LinkId link, std::uint64_t bytes);

    /// The process ends without a word: it gets no turn and no event any more, and of what it sent
    /// some prefix arrives. Its peers get Down (link_closed) within `detection` and, without one,
    /// when they have heard nothing for the idle timeout (timed_out).
    void kill(Carrier& node, std::optional<Duration> detection);

    static constexpr Duration kBreakSpread = std::chrono::milliseconds(1);

private:
    friend class Carrier;
    friend class Link;

    struct Wire {
        std::unique_ptr<Link> dialer{};
        std::unique_ptr<Link> acceptor{};  // null: nobody was there
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
    void reap();

    World* world_;
    FabricOptions options_;
    std::vector<std::unique_ptr<Carrier>> nodes_;
    std::map<NodeId, Carrier*> alive_;
    std::map<std::uint64_t, Wire> wires_;
    std::map<RouteKey, Route> routes_;
    std::uint64_t next_wire_ = 1;
    std::vector<std::uint64_t> forgotten_;  // wires with an end that was forgotten
};

}  // namespace nexar::sim
