// What the engine does for members that are not connected: the overlay carries their packets.

#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

port::Link* Engine::direct_link(const NodeId& node) const noexcept {
    const Peer* const peer = find(node);
    if (peer == nullptr || peer->evicted || !peer->transfers.usable()) return nullptr;
    for (const auto& one : peer->transfers.links()) {
        if (!one->link->remote().is_tunnel()) return one->link;
    }
    return nullptr;
}

void Engine::send_link_state(const NodeId& node, const wire::LinkState& state) {
    if (Peer* const peer = find(node); peer != nullptr && peer->transfers.usable()) {
        peer->transfers.say_message(port::Lane::control, state);
    }
}

void Engine::send_path_request(const NodeId& node, const wire::PathRequest& request) {
    if (Peer* const peer = find(node); peer != nullptr && peer->transfers.usable()) {
        peer->transfers.say_message(port::Lane::control, request);
    }
}

void Engine::disconnect(const NodeId& node, const Error& why) {
    if (Peer* const peer = find(node)) peer->transfers.cut_off(why);
}

Result<void> Engine::on_routing_frame(const Peer& peer, const wire::FrameHeader& header,
                                      port::ConstBytes body) {
    ++rare_frames_;
    if (header.type == wire::FrameType::link_state) {
        NEXAR_TRY_VALUE(state, wire::decode_body<wire::LinkState>(header, body));
        routing_news_.add(peer.node, std::move(state.message));
        return {};
    }
    NEXAR_TRY_VALUE(request, wire::decode_body<wire::PathRequest>(header, body));
    routing_news_.add(peer.node, request.message);
    return {};
}

}  // namespace nexar::engine
