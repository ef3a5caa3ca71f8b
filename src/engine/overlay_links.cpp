// What the overlay knows about links: its own, and those that others say are broken.

#include <algorithm>
#include <array>
#include <utility>

#include "engine/overlay.hpp"

namespace nexar::engine {

void Overlay::look_at_links(TimePoint now) {
    if (now >= grace_ends_) {
        grace_ends_ = TimePoint::max();
        look_again_ = true;
    }
    if (now >= tell_at_) look_again_ = true;
    if (!std::exchange(look_again_, false) && seen_links_ == engine_->link_changes()) return;
    seen_links_ = engine_->link_changes();
    tell_at_ = TimePoint::max();
    std::vector<Rank> down;
    bool all_came = true;
    for (const routing::Position one : graph_->neighbours(routes_->me())) {
        const Member& neighbour = member_at(one);
        if (works(now, neighbour)) {
            failing_.erase(neighbour.rank);
        } else if (is_telling(now, failing_.try_emplace(neighbour.rank, now).first->second)) {
            down.push_back(neighbour.rank);
        }
        all_came = all_came && direct_.contains(neighbour.rank);
    }
    if (all_came) grace_ends_ = TimePoint::max();
    link_states_->set_down(now, down);
}

/// Whether the others should know of a link that has failed since then.
bool Overlay::is_telling(TimePoint now, TimePoint since) {
    if (!complete() || now >= since + options_.discretion) return true;
    tell_at_ = std::min(tell_at_, since + options_.discretion);
    return false;
}

/// True also for the link to a neighbour that may be starting.
bool Overlay::works(TimePoint now, const Member& neighbour) {
    port::Link* link = engine_->direct_link(neighbour.node);
    auto known = direct_.find(neighbour.rank);
    const bool is_new = known == direct_.end() || link == nullptr || known->second.id != link->id();
    // A new link has room, unless its kind forwards nothing.
    if (link != nullptr && is_new && link->relayed_room() == 0) link = nullptr;
    const bool had_one = known != direct_.end();
    if (had_one && (link == nullptr || known->second.id != link->id())) {
        forget(known);
        known = direct_.end();
    }
    if (link != nullptr && known == direct_.end()) {
        direct_[neighbour.rank] = {.id = link->id(), .link = link};
        by_link_[link->id()] = neighbour.rank;
        link_states_->connected(now, neighbour.rank);
        if (grace_ends_ != TimePoint::max()) {
            grace_ends_ = std::clamp(now + options_.grace, grace_ends_, longest_grace_ends_);
        }
    }
    if (link != nullptr) return !engine_->is_doubtful(neighbour.node);
    return !had_one && grace_ends_ != TimePoint::max();
}

void Overlay::forget(std::map<Rank, Direct>::iterator direct) {
    const Rank rank = direct->first;
    by_link_.erase(direct->second.id);
    direct_.erase(direct);
    link_states_->disconnected(rank);
    relay_->disconnected(rank);
}

bool Overlay::exchange_link_states(TimePoint now) {
    bool any = false;
    while (auto news = engine_->routing_news().poll_link_state()) {
        const auto from = ranks_.find(news->node);
        if (from == ranks_.end()) continue;
        const auto handled = link_states_->handle(now, from->second, std::move(news->message));
        if (!handled) engine_->disconnect(news->node, handled.error());
    }
    while (const auto outgoing = link_states_->poll_outgoing(now)) {
        const Member* const to = view_.find(outgoing->to);
        if (to == nullptr) continue;
        engine_->send_link_state(to->node, *outgoing->state);
        any = true;
    }
    if (seen_states_ != link_states_->changes()) {
        seen_states_ = link_states_->changes();
        assume_broken();
    }
    return any;
}

void Overlay::assume_broken() {
    std::vector<routing::Edge> edges;
    for (const auto& [a, b] : link_states_->broken()) {
        const auto from = graph_->position(a);
        const auto to = graph_->position(b);
        if (from && to) edges.push_back({*from, *to});
    }
    routes_->assume_broken(routing::EdgeSet(edges));
}

/// The source of a packet chooses among all neighbours that lead to the target. A relay takes one
/// of the nearest, so that packets do not turn in circles. Neighbours that have no link at the
/// moment, or one that does not work, are left out. The source also leaves out the target itself:
/// two neighbours use a tunnel only after one of them has found that their link does not work, and
/// the other may not know that yet.
std::optional<Rank> Overlay::next_hop(Rank target, std::uint16_t choice,
                                      std::optional<Rank> not_to) {
    const auto destination = graph_->position(target);
    if (!destination || *destination == routes_->me()) return std::nullopt;
    std::array<Rank, routing::Routes::kMostAlternatives> usable{};
    std::size_t count = 0;
    std::optional<std::uint32_t> nearest;
    for (const routing::Alternative& one : routes_->alternatives(*destination)) {
        const Rank rank = graph_->rank(one.next);
        if (rank == not_to || (rank == target && !not_to)) continue;
        if (!direct_.contains(rank) || failing_.contains(rank)) continue;
        if (!nearest) nearest = one.hops;
        if (not_to && one.hops > *nearest) break;
        usable[count++] = rank;
    }
    if (count == 0) return std::nullopt;
    return usable[choice % count];
}

std::size_t Overlay::max_datagram(Rank neighbour) const {
    const auto found = direct_.find(neighbour);
    return found == direct_.end() ? 0 : found->second.link->max_datagram();
}

std::optional<Overlay::Way> Overlay::way_to(Rank member) {
    if (!graph_) return std::nullopt;
    const auto destination = graph_->position(member);
    if (!destination || *destination == routes_->me()) return std::nullopt;
    const auto tunnel = tunnels_.find(member);
    const std::uint16_t choice =
        tunnel == tunnels_.end() ? std::uint16_t{0} : tunnel->second.choice;
    const auto first = next_hop(member, choice, std::nullopt);
    if (!first) return std::nullopt;
    for (const routing::Alternative& one : routes_->alternatives(*destination)) {
        if (graph_->rank(one.next) == *first) return Way{.first = *first, .hops = one.hops};
    }
    return std::nullopt;
}

}  // namespace nexar::engine
