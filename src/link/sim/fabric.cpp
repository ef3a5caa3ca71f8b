#include "link/sim/fabric.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace nexar::sim {

namespace {

template <class Id>
Id id_of(std::uint64_t kind, std::uint64_t index) {
    std::array<std::byte, Id::kBytes> bytes{};
    SplitMix64 numbers(kind * 0x10001 + index);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
        const std::uint64_t word = numbers.next();
        std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    return Id(bytes);
}

}  // namespace

Fabric::Fabric(World& world, const FabricOptions& options) : world_(&world), options_(options) {}

Fabric::~Fabric() = default;

Identity Fabric::identity(std::uint64_t index, std::uint64_t incarnation) {
    return {.cluster = id_of<ClusterId>(1, 0),
            .node = id_of<NodeId>(2, index),
            .incarnation = Incarnation(incarnation)};
}

Carrier& Fabric::add_node(const Identity& identity) {
    auto owned =
        std::make_unique<Carrier>(*this, *world_, identity, fmt::format("node {}", nodes_.size()));
    NEXAR_ASSERT(alive_.emplace(identity.node, owned.get()).second,
                 "a node with this id is already alive");
    return *nodes_.emplace_back(std::move(owned));
}

Carrier* Fabric::find(const NodeId& node) noexcept {
    const auto found = alive_.find(node);
    return found == alive_.end() ? nullptr : found->second;
}

port::LinkId Fabric::dial(Carrier& from, const NodeId& to) {
    NEXAR_ASSERT(from.alive(), "a killed node cannot dial");
    const std::uint64_t number = next_wire_++;
    Wire& wire = wires_[number];
    const auto end = [&](Carrier& at, const Identity& peer, std::string name, bool dialed) {
        const port::LinkId id(at.next_link_++);
        auto link = std::make_unique<Link>(*this, at,
                                           Link::Start{.id = id,
                                                       .wire = number,
                                                       .peer = peer,
                                                       .peer_name = std::move(name),
                                                       .dialed = dialed});
        at.links_.emplace(id.value(), link.get());
        apply_routes(*link);
        return link;
    };
    Carrier* target = find(to);
    const Identity peer = target == nullptr ? Identity{.node = to} : target->identity();
    wire.dialer = end(from, peer, target == nullptr ? to.to_hex() : target->name(), true);
    if (target != nullptr) {
        wire.acceptor = end(*target, from.identity(), from.name(), false);
        wire.dialer->connect(wire.acceptor.get());
        wire.acceptor->connect(wire.dialer.get());
    }
    wire.dialer->dial();
    return wire.dialer->id();
}

void Fabric::apply_routes(Link& link) {
    const NodeId& own = link.carrier_->identity().node;
    const NodeId& peer = link.peer().node;
    const auto out = routes_.find({own, peer});
    link.weather_ =
        out == routes_.end() ? options_.weather : out->second.weather.value_or(options_.weather);
    const auto in = routes_.find({peer, own});
    link.set_blocked(in != routes_.end() && in->second.blocked);
}

void Fabric::apply_routes_to_all() {
    for (auto& [number, wire] : wires_) {
        apply_routes(*wire.dialer);
        if (wire.acceptor != nullptr) apply_routes(*wire.acceptor);
    }
}

void Fabric::set_weather(const LinkWeather& weather) {
    options_.weather = weather;
    for (auto& [key, route] : routes_) route.weather.reset();
    apply_routes_to_all();
}

void Fabric::set_weather(const NodeId& from, const NodeId& to, const LinkWeather& weather) {
    routes_[{from, to}].weather = weather;
    apply_routes_to_all();
}

void Fabric::set_blocked(const NodeId& from, const NodeId& to, bool blocked) {
    routes_[{from, to}].blocked = blocked;
}

bool Fabric::cut(const NodeId& from, const NodeId& to) const {
    const auto found = routes_.find({from, to});
    return found != routes_.end() && found->second.blocked;
}

void Fabric::partition(const NodeId& from, const NodeId& to, Way way) {
    set_blocked(from, to, true);
    if (way == Way::both) set_blocked(to, from, true);
    apply_routes_to_all();
}

void Fabric::heal(const NodeId& from, const NodeId& to, Way way) {
    set_blocked(from, to, false);
    if (way == Way::both) set_blocked(to, from, false);
    apply_routes_to_all();
}

void Fabric::heal_all() {
    for (auto& [key, route] : routes_) route.blocked = false;
    apply_routes_to_all();
}

void Fabric::break_link(Carrier& node, port::LinkId id, Duration spread) {
    Link* link = node.find(id);
    if (link != nullptr) break_wire(*link, spread);
}

void Fabric::break_link_after(Carrier& node, port::LinkId id, std::uint64_t bytes) {
    Link* link = node.find(id);
    if (link != nullptr) link->break_at_bytes_ = link->bytes_sent() + bytes;
}

void Fabric::break_wire(Link& link, Duration spread) {
    for (Link* end : {&link, link.peer_}) {
        if (end == nullptr) continue;
        end->sever();
        const auto most = static_cast<std::uint64_t>(spread.count()) + 1;
        const Duration late(static_cast<Duration::rep>(world_->random().below(most)));
        end->end_at(
            world_->now() + late,
            Error(Errc::link_closed, fmt::format("the link to {} broke", end->start_.peer_name)));
    }
}

void Fabric::kill(Carrier& node, std::optional<Duration> detection) {
    NEXAR_ASSERT(node.alive(), "a node can be killed only once");
    node.alive_ = false;
    alive_.erase(node.identity().node);
    if (node.driver() != nullptr) world_->remove(*node.driver());
    node.driven_by_nobody();
    const auto links = node.links_;
    for (const auto& [number, link] : links) {
        if (Link* peer = link->peer_; peer != nullptr) {
            peer->sever();
            if (detection) {
                const auto most = static_cast<std::uint64_t>(detection->count()) + 1;
                const Duration late(static_cast<Duration::rep>(world_->random().below(most)));
                peer->end_at(world_->now() + late,
                             Error(Errc::link_closed, fmt::format("{} is gone: its process "
                                                                  "no longer exists",
                                                                  node.name())));
            } else {
                peer->went_silent();
            }
        }
        // Kept until the fabric ends: code that ran on the node may still refer to it.
        link->disappear();
        node.detach(*link);
    }
    node.events_.clear();
}

void Fabric::reap() {
    if (forgotten_.empty()) return;
    for (const std::uint64_t number : std::exchange(forgotten_, {})) {
        const auto found = wires_.find(number);
        if (found == wires_.end()) continue;
        const Wire& wire = found->second;
        const bool acceptor_gone = wire.acceptor == nullptr || wire.acceptor->forgotten_;
        if (wire.dialer->forgotten_ && acceptor_gone) wires_.erase(found);
    }
}

}  // namespace nexar::sim
