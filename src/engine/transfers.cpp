#include "engine/transfers.hpp"

#include <variant>

#include "engine/peer_transfers.hpp"

namespace nexar::engine {

void Transfers::handle(const port::LinkEvent& event) {
    const auto found = by_link_.find(event.link);
    if (found == by_link_.end()) return;  // no peer has taken over this link
    PeerTransfers& peer = *found->second;
    if (const auto* down = std::get_if<port::Down>(&event.what)) {
        by_link_.erase(found);
        peer.on_down(*down);
    } else if (const auto* opened = std::get_if<port::Opened>(&event.what)) {
        peer.on_opened(opened->stream);
    } else if (const auto* finished = std::get_if<port::Finished>(&event.what)) {
        peer.on_finished(*finished);
    } else if (const auto* aborted = std::get_if<port::Aborted>(&event.what)) {
        peer.on_aborted(aborted->stream);
    } else if (const auto* released = std::get_if<port::Released>(&event.what)) {
        peer.on_released(*released);
    } else if (const auto* writable = std::get_if<port::Writable>(&event.what)) {
        peer.on_writable(writable->lane);
    }
    offer_rests();
}

void Transfers::offer_due_rests() {
    while (!rests_due_.empty()) {
        const auto [peer, stream] = rests_due_.front();
        rests_due_.pop_front();
        peer->offer_rest(stream);
    }
}

}  // namespace nexar::engine
