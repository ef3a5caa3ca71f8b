// Connects agreements with links and operations.

#include <algorithm>

#include "engine/engine.hpp"

namespace nexar::engine {

void Engine::start(Context& context, AgreeOperation& agreement) {
    agreement.creations = context.creations;
    if (!admit(context, agreement)) return;
    agreements_.start(context.id, agreement);
    for (const auto& peer : peers_) {
        if (!peer->unreachable || peer->replaced || !peer->lost) continue;
        agreements_.cannot_reach(peer->node, *peer->lost);
    }
}

void Engine::send(const NodeId& to, const wire::Agreement& frame) {
    Peer* const peer = find(to);
    if (peer == nullptr || peer->lost) return;
    want(*peer);
    peer->transfers.say_message(port::Lane::control, frame);
}

void Engine::end(AgreeOperation& operation) {
    finish(operation);
}

void Engine::agreed(ContextId context, std::uint64_t creation) {
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    found->second->creations = std::max(found->second->creations, creation);
}

}  // namespace nexar::engine
