#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/identity.hpp"
#include "link/sim/link.hpp"
#include "link/sim/node_carrier.hpp"

namespace nexar::sim {

/// All simulated links of one node. Fabric::add_node() makes it; it lives as long as the fabric.
class Carrier final : public NodeCarrier {
public:
    Carrier(Fabric& fabric, World& world, const Identity& identity, std::string name);
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    const Identity& identity() const noexcept { return identity_; }
    /// "node 3", in the order in which nodes were added.
    const std::string& name() const noexcept { return name_; }
    /// True until the node is killed.
    bool alive() const noexcept { return alive_; }

    /// Begins a link; Up or Down follows.
    port::LinkId dial(const NodeId& node);
    /// Ignores the address: the node id is enough. There are no seeds on this level.
    Result<port::LinkId> dial(TimePoint now, const port::DialTarget& target) override;
    void abandon(port::LinkId link) override;

    /// Decides whether a peer may dial us; an Error says why not. Empty: every peer may.
    std::function<std::optional<Error>(const Identity& peer)> gate{};

    /// Null for an unknown or forgotten link.
    Link* find(port::LinkId link) noexcept;
    /// The first link to that node that is up; null if there is none.
    Link* link_to(const NodeId& node) noexcept;

    bool wants_write() const noexcept override { return false; }
    bool on_ready(TimePoint now) override;
    void flush(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override;
    void forget(port::LinkId link) override;

private:
    friend class Fabric;
    friend class Link;

    void emit(port::LinkEvent event);
    /// Inserts an event of a link before its Down, unless Down was already polled.
    void emit_before_down(port::LinkEvent event);
    void set_ready(Link& link);
    void detach(Link& link);
    void remove(Link& link);

    Fabric* fabric_;
    Identity identity_;
    std::string name_;
    bool alive_ = true;
    std::uint64_t next_link_ = 1;
    std::map<std::uint64_t, Link*> links_;
    std::deque<port::LinkEvent> events_;
    std::vector<Link*> ready_;
    std::vector<Link*> flushing_;  // used only inside flush()
    link::TimerHeap<Pipe> arrivals_;
    link::TimerHeap<Link> timers_;
};

}  // namespace nexar::sim
