// Connects agreements with links and operations.

#include <algorithm>

#include "engine/engine.hpp"

namespace nexar::engine {

void Engine::start(Context& context, AgreeOperation& agreement) {
    agreement.creations = context.creations;
    if (!admit(context, agreement)) return;
    agreements_.start(context.id, agreement);
    for (const auto& peer : peers_) {
        const auto& lost = peer->lost;
        if (peer->unreachable && !peer->replaced && lost) {
            agreements_.cannot_reach(peer->node, *lost);
        }
    }
}

void Engine::send(const NodeId& to, const wire::Agreement& frame) {
    Peer* const peer = find(to);
    if (peer == nullptr) return;
    // A peer that asks for a decision gets it even if this node has not heard its heartbeat yet:
    // nobody would send it later.
    const bool asks =
        peer->unreachable && peer->transfers.up() && frame.step == wire::AgreementStep::decision;
    if (peer->lost && !asks) return;
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
