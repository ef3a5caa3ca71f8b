// Links to peers: how they come up, and what ends with them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "engine/engine.hpp"

namespace nexar::engine {

void Engine::handle(const port::LinkEvent& event) {
    if (const auto* up = std::get_if<port::Up>(&event.what)) {
        on_up(event.link, *up);
    } else {
        if (std::holds_alternative<port::PathChanged>(event.what) ||
            std::holds_alternative<port::Down>(event.what)) {
            ++link_changes_;
        }
        transfers_.handle(event);
    }
}

void Engine::on_up(port::LinkId id, const port::Up& up) {
    NEXAR_ASSERT(!up.joiner && id == up.link->id());
    Peer* const peer = find(up.link->peer().node);
    if (peer == nullptr || !admits(*peer, *up.link) || peer->transfers.violation()) {
        up.link->close("you are not a member, or you are disconnected");
        return;
    }
    if (peer->transfers.links().size() == PeerTransfers::kMaxLinks) {
        peer->transfers.cut_off(Error(Errc::limit_exceeded, "the peer opened too many links"));
        up.link->close("you opened too many links");
        return;
    }
    connect(*peer, *up.link);
}

Peer* Engine::find(const NodeId& node) const noexcept {
    const auto found = std::ranges::find_if(
        peers_, [&](const auto& peer) { return peer->node == node && !peer->replaced; });
    return found == peers_.end() ? nullptr : found->get();
}

/// True if the peer may have this link: it is not lost, and the link is not one of a process that
/// had the same node id before.
bool Engine::admits(const Peer& peer, const port::Link& link) const noexcept {
    if ((peer.lost && !peer.unreachable) || closing_ || peer.transfers.over()) return false;
    const Member* const member = view_.find(peer.node);
    return member == nullptr || link.peer().incarnation >= member->incarnation;
}

bool Engine::take_over(port::Link& link, std::unique_ptr<LaneReader>& control,
                       std::uint64_t control_bytes) {
    Peer* const peer = find(link.peer().node);
    if (peer == nullptr || peer->transfers.up() || !admits(*peer, link)) return false;
    connect(*peer, link, std::move(control), control_bytes);
    return true;
}

bool Engine::prefer(const NodeId& node, port::LinkId link) {
    Peer* const peer = find(node);
    return peer != nullptr && peer->transfers.usable() && peer->transfers.prefer(link);
}

void Engine::connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control,
                     std::uint64_t control_bytes) {
    const bool first = !peer.transfers.up();
    ++link_changes_;
    peer.identity = link.peer();
    recording_.link(EventKind::link_up, peer.node, 0);
    peer.transfers.connect(link, std::move(control), control_bytes);
    if (!first) return;
    membership_.hint(peer, membership::Hint::connected);
    settle_older(peer, Error(Errc::peer_unreachable,
                             "the link to the peer broke and was replaced; what was in flight is "
                             "lost"));
    if (abort_) peer.transfers.say_message(port::Lane::control, *abort_);
    tell_again(peer);
    messages_.drain(peer);
    calls_.drain(peer);
    collectives_.drain(peer);
    agreements_.connected(peer.node);
}

std::optional<LinkNews> Engine::poll_link_news() {
    if (link_news_.empty()) return std::nullopt;
    LinkNews first = std::move(link_news_.front());
    link_news_.pop_front();
    return first;
}

void Engine::send_link_news(const NodeId& node, const LinkMessage& message) {
    Peer* const peer = find(node);
    if (peer == nullptr) return;
    std::visit([&](const auto& one) { peer->transfers.say_message(port::Lane::control, one); },
               message);
}

bool Engine::use_link(const NodeId& node, port::LinkId link) {
    Peer* const peer = find(node);
    return peer != nullptr && peer->transfers.usable() && peer->transfers.use(link);
}

bool Engine::is_connected(const NodeId& node) const noexcept {
    const Peer* const peer = find(node);
    return peer != nullptr && peer->transfers.usable();
}

bool Engine::tunnels_settled(TimePoint since) const noexcept {
    return std::ranges::none_of(peers_, [&](const auto& peer) {
        const PeerTransfers& transfers = peer->transfers;
        return transfers.in_tunnel() && transfers.heard_since(since) && !transfers.settled();
    });
}

std::vector<std::string> Engine::links_of(const NodeId& node) const {
    std::vector<std::string> kinds;
    const Peer* const peer = find(node);
    if (peer == nullptr) return kinds;
    for (const auto& one : peer->transfers.links()) kinds.emplace_back(one->link->kind());
    return kinds;
}

bool Engine::lose_links(const NodeId& node) {
    Peer* const peer = find(node);
    if (peer == nullptr || !peer->transfers.up() || !options_.awaits_verdicts || closing_) {
        return false;
    }
    NEXAR_LOG_WARNING("the link to node {} no longer works and is replaced by another one{}{}",
                      node.to_hex(), peer->silent ? "; nothing comes from it" : "",
                      peer->stalled ? "; it acknowledges nothing" : "");
    peer->transfers.sever(Error(Errc::link_closed, "the link no longer works"));
    return true;
}

void Engine::set_silent(const NodeId& node, bool silent) {
    Peer* const peer = find(node);
    if (peer == nullptr) return;
    peer->silent = silent;
    ++link_changes_;
    NEXAR_LOG_DEBUG("node {} {}", node.to_hex(), silent ? "is silent" : "is heard again");
    if (!silent) return;
    for (const auto& one : peer->transfers.links()) one->link->refresh();
    wanted_.push_back(node);
}

void Engine::on_stalled(Peer& peer, bool stalled) {
    peer.stalled = stalled;
    ++link_changes_;
    NEXAR_LOG_DEBUG("the link to node {} {}", peer.node.to_hex(),
                    stalled ? "does not get acknowledgements" : "gets acknowledgements again");
    if (stalled) wanted_.push_back(peer.node);
}

bool Engine::is_doubtful(const NodeId& node) const noexcept {
    if (!options_.awaits_verdicts || closing_) return false;  // links are not replaced
    const Peer* const peer = find(node);
    return peer != nullptr && (peer->silent || peer->stalled) && peer->transfers.has_links();
}

bool Engine::awaits_link(const NodeId& node) const noexcept {
    const Peer* const peer = find(node);
    return peer != nullptr && (!peer->lost || peer->unreachable) && !peer->transfers.has_links() &&
           !peer->transfers.over();
}

/// Two members whose link broke may get another one. What was in flight is lost, so communicators
/// that contain the peer keep the old record, and their operations with it end. New communicators,
/// agreements and calls use the new record.
void Engine::renew(Peer& peer) {
    const bool ended = peer.transfers.over() && !peer.transfers.ending();
    const bool may_return = !peer.lost || peer.unreachable;
    if (!ended || !may_return || closing_ || !options_.awaits_verdicts || !in_view(peer.node)) {
        return;
    }
    peer.replaced = true;
    Peer& renewed = add_peer(peer.node);
    renewed.membership.revocations = std::move(peer.membership.revocations);
    renewed.membership.new_world = std::move(peer.membership.new_world);
    if (!peer.unreachable) return;
    renewed.lost = peer.lost;
    renewed.unreachable = true;
}

/// Ends what waits for a verdict on older records of a peer.
void Engine::settle_older(const Peer& peer, const Error& reason) {
    for (const auto& older : peers_) {
        if (older->node != peer.node || older.get() == &peer || older->lost) continue;
        older->unreachable = true;
        older->lost = reason;
        lose(*older, reason);
        abort_collectives(*older, reason);
    }
}

void Engine::abort_collectives(Peer& peer, const Error& reason) {
    for (const auto& [id, pair] : peer.pairs) {
        if (pair->context == nullptr) continue;
        pair->context->collectives.some_lost = true;
        collectives_.abort(*pair->context, reason.within({.rank = public_rank(pair->rank)}), true);
    }
}

void Engine::give_up(const NodeId& node, const Error& reason) {
    Peer* const peer = find(node);
    if (peer == nullptr || peer->transfers.up() || peer->transfers.ending() || peer->lost) return;
    recording_.link(EventKind::link_given_up, node, static_cast<std::uint16_t>(reason.code()));
    lose(*peer, reason);
}

void Engine::on_report(Peer& peer, const wire::ErrorReport& report) {
    if (report == goodbye()) {
        peer.goodbye = true;
        return;
    }
    const std::string text = printable(report.text, wire::kMaxReportTextBytes);
    NEXAR_LOG_WARNING("node {} reports {}: {}", peer.node.to_hex(), name(report.code), text);
    peer.farewell = Error(Errc::link_closed, fmt::format("the peer left: {}", text));
}

std::optional<std::pair<NodeId, Error>> Engine::casualty() const {
    for (const auto& peer : peers_) {
        const std::optional<Error>& lost = peer->lost;
        if (!lost || peer->unreachable) continue;
        const bool orderly = lost->code() == Errc::link_closed && !peer->farewell;
        if (!orderly) return std::pair(peer->node, *lost);
    }
    return std::nullopt;
}

void Engine::on_down(Peer& peer, const Error& reason) {
    // The link itself knows only that this side closed it, or that nothing answers any more.
    const bool orderly = peer.goodbye && reason.code() != Errc::link_closed;
    const Error known = orderly ? Error(Errc::link_closed, "the peer left the cluster") : reason;
    const Error told = closing_
                           ? Error(Errc::closed, "the node was closed")
                           : peer.transfers.violation().value_or(peer.farewell.value_or(known));
    recording_.link(EventKind::link_down, peer.node, static_cast<std::uint16_t>(told.code()));
    const bool left = peer.goodbye || peer.farewell;
    if (left && !closing_ && !peer.evicted) membership_.hint(peer, membership::Hint::left);
    const bool clear = left || closing_ || peer.lost || peer.transfers.violation();
    if (!left && !peer.transfers.violation()) wanted_.push_back(peer.node);  // see renew()
    if (clear || !options_.awaits_verdicts) return lose(peer, told);
    // The verdict on the peer, or another link to it, ends its operations.
    messages_.strand(peer);
    collectives_.strand(peer);
}

/// Ends everything that involves a peer that has no link and will have none.
void Engine::lose(Peer& peer, const Error& reason) {
    if (std::exchange(peer.settled, true)) return;
    if (!peer.lost) peer.lost = reason;
    const Error why = *peer.lost;
    calls_.down(peer, why);
    collectives_.down(peer, why);
    if (epoch() == Epoch(0)) agreements_.cannot_reach(peer.node, why);
    messages_.down(peer, why);
    peer.segments.clear();
    peer.buffers.clear();
    look_at_exchanges();
    std::erase_if(peer.pairs, [](const auto& entry) { return entry.second->ended; });
    peer.last_pair = nullptr;
}

}  // namespace nexar::engine
