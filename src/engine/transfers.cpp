#include "engine/transfers.hpp"

#include <algorithm>
#include <variant>

#include "engine/peer_transfers.hpp"

namespace nexar::engine {

void Transfers::handle(const port::LinkEvent& event) {
    const auto found = by_link_.find(event.link);
    if (found == by_link_.end()) return;  // no peer has taken over this link
    PeerLink& link = *found->second;
    PeerTransfers& peer = *link.owner;
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        by_link_.erase(found);
        peer.on_down(link, *down);
    } else if (const auto* opened = std::get_if<port::Opened>(&event.what)) {
        peer.on_opened(link, opened->stream);
    } else if (const auto* finished = std::get_if<port::Finished>(&event.what)) {
        peer.on_finished(link, *finished);
    } else if (const auto* aborted = std::get_if<port::Aborted>(&event.what)) {
        peer.on_aborted(link, aborted->stream);
    } else if (const auto* released = std::get_if<port::Released>(&event.what)) {
        peer.on_released(link, *released);
    } else if (const auto* shared = std::get_if<port::Shared>(&event.what)) {
        owner_->on_shared(peer.peer(), *shared);
    } else if (const auto* datagram = std::get_if<port::DatagramArrived>(&event.what)) {
        peer.on_datagram(datagram->bytes);
    } else if (const auto* writable = std::get_if<port::Writable>(&event.what)) {
        peer.on_writable(link, writable->lane);
    } else if (std::holds_alternative<port::PeerRefused>(event.what)) {
        owner_->on_refused(peer.peer());
    } else if (const auto* stalled = std::get_if<port::Stalled>(&event.what)) {
        owner_->on_stalled(peer.peer(), stalled->stalled);
    }
    offer_rests();
}

bool Transfers::refers_to(const PeerTransfers& peer) const noexcept {
    return std::ranges::any_of(rests_due_, [&](const auto& due) { return due.first == &peer; });
}

void Transfers::offer_due_rests() {
    while (!rests_due_.empty()) {
        const auto [peer, number] = rests_due_.front();
        rests_due_.pop_front();
        peer->offer_rest(number);
    }
}

}  // namespace nexar::engine
