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
        transfers_.handle(event);
    }
}

void Engine::on_up(port::LinkId id, const port::Up& up) {
    NEXAR_ASSERT(!up.joiner && id == up.link->id());
    Peer* const peer = awaited(up.link->peer().node);
    if (peer == nullptr) {
        up.link->close("you are not a member, or you are already connected");
        return;
    }
    connect(*peer, *up.link, nullptr);
}

/// The peer with that node id, if it may have a link now.
Peer* Engine::awaited(const NodeId& node) noexcept {
    const auto found =
        std::ranges::find_if(peers_, [&](const auto& peer) { return peer->node == node; });
    if (found == peers_.end() || (*found)->transfers.up() || (*found)->lost || closing_) {
        return nullptr;
    }
    return found->get();
}

bool Engine::take_over(port::Link& link, std::unique_ptr<LaneReader>& control) {
    Peer* const peer = awaited(link.peer().node);
    if (peer == nullptr) return false;
    connect(*peer, link, std::move(control));
    return true;
}

void Engine::connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control) {
    recording_.link(EventKind::link_up, peer.node, 0);
    peer.transfers.connect(link, std::move(control));
    if (abort_) peer.transfers.say_message(port::Lane::control, *abort_);
    messages_.drain(peer);
    calls_.drain(peer);
    collectives_.drain(peer);
}

void Engine::give_up(const NodeId& node, const Error& reason) {
    Peer* const peer = awaited(node);
    if (peer == nullptr) return;
    recording_.link(EventKind::link_given_up, node, static_cast<std::uint16_t>(reason.code()));
    lose(*peer, reason);
}

void Engine::on_report(Peer& peer, const wire::ErrorReport& report) {
    const std::string text = printable(report.text, wire::kMaxReportTextBytes);
    NEXAR_LOG_WARNING("node {} reports {}: {}", peer.node.to_hex(), name(report.code), text);
    peer.farewell = Error(Errc::link_closed, fmt::format("the peer left: {}", text));
}

std::optional<std::pair<NodeId, Error>> Engine::casualty() const {
    for (const auto& peer : peers_) {
        const std::optional<Error>& lost = peer->lost;
        if (!lost) continue;
        const bool orderly = lost->code() == Errc::link_closed && !peer->farewell;
        if (!orderly) return std::pair(peer->node, *lost);
    }
    return std::nullopt;
}

void Engine::on_down(Peer& peer, const Error& reason) {
    // The link itself knows only that this side closed it.
    const Error told = closing_
                           ? Error(Errc::closed, "the node was closed")
                           : peer.transfers.violation().value_or(peer.farewell.value_or(reason));
    recording_.link(EventKind::link_down, peer.node, static_cast<std::uint16_t>(told.code()));
    lose(peer, told);
}

/// Ends everything that involves a peer that has no link and will have none.
void Engine::lose(Peer& peer, const Error& reason) {
    if (peer.lost) return;
    peer.lost = reason;
    calls_.down(peer, reason);
    collectives_.down(peer, reason);
    messages_.down(peer, reason);
    std::erase_if(peer.pairs, [](const auto& entry) { return entry.second->ended; });
    peer.last_pair = nullptr;
}

}  // namespace nexar::engine
