// Packets of tunnels: from the carrier into envelopes, on their way, and back to a carrier.

#include "engine/overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

namespace {

/// After the last packet that the other end sends, this end acknowledges it with a packet or two,
/// which nothing answers.
constexpr unsigned kMostUnanswered = 3;

/// True for a datagram that only an overlay understands.
bool is_envelope(port::ConstBytes datagram) noexcept {
    return datagram.size() > 1 && datagram[1] == static_cast<std::byte>(wire::FrameType::envelope);
}

/// True if `a` is later than `b`, where numbers wrap around (RFC 1982).
bool is_later(std::uint16_t a, std::uint16_t b) noexcept {
    const auto ahead = static_cast<std::uint16_t>(a - b);
    return ahead != 0 && ahead < 0x8000;
}

}  // namespace

Overlay::Overlay(const Surroundings& surroundings, const OverlayOptions& options)
    : engine_(&surroundings.engine),
      carrier_(&surroundings.carrier),
      signer_(&surroundings.signer),
      neighbourhood_(&surroundings.neighbourhood),
      options_(options) {}

/// Threads that look at the clock before they take turns may come in another order.
TimePoint Overlay::latest(TimePoint now) {
    return latest_ = std::max(latest_, now);
}

void Overlay::adopt(TimePoint now, const View& view, const Identity& me) {
    now = latest(now);
    const Member* const own = view.find(me.node);
    NEXAR_ASSERT(own != nullptr && view.epoch > view_.epoch);
    view_ = view;
    view_.spent = {};
    me_ = own->rank;
    if (!link_states_) {
        link_states_ = std::make_unique<routing::LinkStates>(me.cluster, *signer_);
        routing::NextHops& hops = *this;
        const routing::Outlets& outlets = *this;
        const routing::Roster& roster = *this;
        relay_ = std::make_unique<routing::Relay>(me_, hops, outlets, roster, options_.relay);
    }
    ranks_.clear();
    for (const Member& member : view.members) ranks_.emplace(member.node, member.rank);
    graph_ = neighbourhood_->graph(view);
    routes_ = std::make_unique<routing::Routes>(
        graph_, static_cast<routing::Position>(own - view.members.data()));
    link_states_->set_complete(complete());
    link_states_->adopt(now, view, me_);
    for (auto at = direct_.begin(); at != direct_.end();) {
        const auto next = std::next(at);
        const auto position = graph_->position(at->first);
        if (!position || !graph_->adjacent(routes_->me(), *position)) forget(at);
        at = next;
    }
    std::erase_if(failing_, [this](const auto& entry) { return !is_member(entry.first); });
    std::erase_if(tunnels_, [this](const auto& entry) { return !is_member(entry.first); });
    longest_grace_ends_ = now + options_.longest_grace;
    grace_ends_ = complete() ? longest_grace_ends_ : now + options_.grace;
    look_again_ = true;
    assume_broken();
}

std::optional<std::vector<NodeId>> Overlay::neighbours() const {
    if (complete()) return std::nullopt;
    std::vector<NodeId> nodes;
    for (const routing::Position one : graph_->neighbours(routes_->me())) {
        nodes.push_back(member_at(one).node);
    }
    return nodes;
}

bool Overlay::is_neighbour(const NodeId& node) const {
    const auto rank = ranks_.find(node);
    if (rank == ranks_.end()) return false;
    const auto position = graph_->position(rank->second);
    return position && graph_->adjacent(routes_->me(), *position);
}

bool Overlay::take(TimePoint now, port::LinkEvent& event) {
    auto* const datagram = std::get_if<port::DatagramArrived>(&event.what);
    if (datagram == nullptr || !is_envelope(datagram->bytes) || !graph_) return false;
    now = latest(now);
    look_at_links(now);  // an event before this one may have ended a link
    // From others than neighbours only while views differ: then it is lost, as packets may be.
    const auto from = by_link_.find(event.link);
    if (from == by_link_.end()) return true;
    const routing::Outcome outcome = relay_->arrived(now, from->second, std::move(datagram->bytes));
    if (!routing::is_violation(outcome)) return true;
    const Member* const member = view_.find(from->second);
    if (member == nullptr) return true;
    engine_->disconnect(
        member->node,
        Error(Errc::protocol_violation,
              fmt::format("rank {} sent an envelope that no member sends or forwards ({})",
                          member->rank.value(), routing::name(outcome))));
    return true;
}

bool Overlay::turn(TimePoint now) {
    if (!graph_) return false;
    now = latest(now);
    look_at_links(now);
    bool any = exchange_link_states(now);
    any = take_arrived(now) || any;
    any = send_tunnelled(now) || any;
    if (const auto due = relay_->next_deadline(); due && *due <= now) relay_->expire(now);
    return pump(now) || any;
}

bool Overlay::take_arrived(TimePoint now) {
    bool any = false;
    while (const auto packet = relay_->poll_arrived()) {
        any = true;
        const Member* const source = view_.find(packet->source);
        if (source == nullptr) continue;
        const bool is_new = carrier_->on_tunnelled(now, source->node, packet->packet());
        Tunnel& tunnel = tunnel_to(packet->source);
        if (is_new) {
            tunnel.unanswered.reset();
            tunnel.sent = 0;
            tunnel.patience = options_.patience;
            tunnel.proven = true;
        }
        // The other end found that its way no longer works. That may also be true of the way back.
        // A handshake begins with packets that prove nothing.
        const bool follows = is_new || !tunnel.proven;
        if (follows && is_later(packet->choice, tunnel.choice)) tunnel.choice = packet->choice;
    }
    return any;
}

Overlay::Tunnel& Overlay::tunnel_to(Rank member) {
    return tunnels_.try_emplace(member, Tunnel{.patience = options_.patience}).first->second;
}

bool Overlay::send_tunnelled(TimePoint now) {
    bool any = false;
    while (const auto packet = carrier_->poll_tunnelled()) {
        any = true;
        send(now, *packet);
    }
    return any;
}

void Overlay::send(TimePoint now, const port::TunnelPacket& packet) {
    const auto target = ranks_.find(packet.to);
    if (target == ranks_.end() || target->second == me_) return;
    Tunnel& tunnel = tunnel_to(target->second);
    if (!tunnel.unanswered) tunnel.unanswered = now;
    const bool is_late = now - *tunnel.unanswered >= tunnel.patience;
    if (++tunnel.sent > kMostUnanswered && is_late) {
        ++tunnel.choice;
        tunnel.sent = 1;
        tunnel.unanswered = now;
        tunnel.patience = std::min(2 * tunnel.patience, options_.longest_patience);
    }
    relay_->send(now, target->second, tunnel.choice, packet.bytes);
}

/// Gives each link what it takes now. The rest waits in the relay, where it grows too old, and
/// where pairs take turns.
bool Overlay::pump(TimePoint now) {
    bool any = false;
    for (const Rank rank : relay_->neighbours_with_work()) {
        const auto direct = direct_.find(rank);
        if (direct == direct_.end()) continue;
        port::Link& link = *direct->second.link;
        while (link.relayed_room() >= link.max_datagram()) {
            const auto datagram = relay_->poll(now, rank);
            if (!datagram) break;
            link.send_relayed(*datagram);
            any = true;
        }
    }
    return any;
}

std::optional<TimePoint> Overlay::next_deadline() const {
    if (!graph_) return std::nullopt;
    std::optional<TimePoint> due = relay_->next_deadline();
    const auto at = [&](const std::optional<TimePoint>& time) {
        if (time) due = due ? std::min(*due, *time) : time;
    };
    at(link_states_->next_deadline());
    for (const TimePoint time : {grace_ends_, tell_at_}) {
        if (time != TimePoint::max()) at(time);
    }
    return due;
}

}  // namespace nexar::engine
