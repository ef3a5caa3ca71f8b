// What the engine carries for those who decide on the members: messages, hints and revocations.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

/// Revocations of one peer in communicators that this side does not know: it has not made them
/// yet, or has ended them long ago.
constexpr std::size_t kMostEarlyRevocations = 256;

/// Revocations that this side repeats when a peer can be reached again. A peer that missed older
/// ones has had time to notice.
constexpr std::size_t kMostRepeatedRevocations = 64;

/// Messages about members that wait for the link to one peer. Those that matter are repeated.
constexpr std::size_t kMostUnsaid = 16;

/// True if what is said to the peer now can reach it.
bool hears(const Peer& peer) noexcept {
    return !peer.lost && peer.transfers.usable();
}

}  // namespace

wire::ErrorReport goodbye() {
    return {.code = Errc::closed, .epoch = {}, .text = {}, .rank = {}, .sequence = {}};
}

// Hints.

void Engine::on_link_down(Peer& peer, const port::Down& down) {
    if (closing_ || peer.evicted || peer.goodbye || peer.farewell) return;
    NEXAR_LOG_DEBUG("a link to node {} broke: {}", peer.node.to_hex(), down.reason.what());
    membership_.hint(peer, down.peer_gone ? membership::Hint::gone : membership::Hint::doubtful);
}

void Engine::on_refused(Peer& peer) {
    if (closing_ || peer.evicted) return;
    membership_.hint(peer, membership::Hint::doubtful);
}

// Messages.

void Engine::send_membership(const NodeId& node, const membership::Message& message) {
    Peer* const found = find(node);
    if (found == nullptr || found->evicted) return;
    // In a mesh that connects on demand, observing each other is a demand.
    if (!found->transfers.up() && !found->lost) want(*found);
    PeerTransfers& transfers = found->transfers;
    if (!transfers.usable()) return say_later(*found, message);
    if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) {
        const std::vector<std::byte> bytes = wire::to_bytes(*heartbeat);
        for (const auto& one : transfers.links()) {
            if (one->link->max_datagram() < bytes.size()) continue;
            one->link->send_datagram(bytes);
            return;
        }
    }
    // Less than what would disconnect the peer.
    const std::size_t most =
        std::min(MembershipQueue::kMostMessages, options_.max_control_backlog / 2);
    if (transfers.backlog(port::Lane::control) >= most ||
        transfers.backlog_bytes(port::Lane::control) >= MembershipQueue::kMostBytes) {
        return;  // it does not read
    }
    std::visit([&](const auto& one) { transfers.say_message(port::Lane::control, one); }, message);
}

/// Members that are not neighbours connect when one of them has something to say. Heartbeats would
/// be too old by then.
void Engine::say_later(Peer& peer, const membership::Message& message) {
    const bool is_heartbeat = std::holds_alternative<wire::Heartbeat>(message);
    if (is_heartbeat || peer.lost || peer.transfers.over()) return;
    auto& unsaid = peer.membership.unsaid;
    if (unsaid.size() == kMostUnsaid) unsaid.pop_front();
    unsaid.push_back(message);
}

Result<void> Engine::on_membership_frame(Peer& peer, const wire::FrameHeader& header,
                                         port::ConstBytes body) {
    ++rare_frames_;
    const auto add = [&](auto message) { membership_.add(peer, std::move(message), body.size()); };
    switch (header.type) {
        case wire::FrameType::suspicion: {
            NEXAR_TRY_VALUE(suspicion, wire::decode_body<wire::Suspicion>(header, body));
            add(suspicion.message);
            return {};
        }
        case wire::FrameType::ballot: {
            NEXAR_TRY_VALUE(ballot, wire::decode_body<wire::Ballot>(header, body));
            add(std::move(ballot.message));
            return {};
        }
        case wire::FrameType::view: {
            NEXAR_TRY_VALUE(view, wire::decode_body<wire::ViewFrame>(header, body));
            add(std::move(view.message));
            return {};
        }
        default: {
            NEXAR_TRY_VALUE(heartbeat, wire::decode_body<wire::Heartbeat>(header, body));
            add(heartbeat.message);
            return {};
        }
    }
}

Result<void> Engine::on_datagram(Peer& peer, port::ConstBytes bytes) {
    NEXAR_TRY_VALUE(header, wire::decode_frame_header(bytes));
    const port::ConstBytes body = bytes.subspan(wire::kFrameHeaderBytes);
    if (!wire::belongs_in_datagram(header.type) || header.type != wire::FrameType::heartbeat) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent a frame of type {} in a datagram", wire::name(header.type)));
    }
    if (body.size() != header.body_bytes) {
        return Error(Errc::malformed, "the peer sent a datagram that is not one whole frame");
    }
    return on_membership_frame(peer, header, body);
}

// Worlds.

void Engine::send_new_world(const NodeId& node, const wire::NewWorld& world) {
    Peer* const peer = find(node);
    if (peer == nullptr || (peer->lost && !peer->unreachable)) return;
    peer->membership.new_world = world;
    if (hears(*peer)) return peer->transfers.say_message(port::Lane::control, world);
    want(*peer);
}

void Engine::tell_again(Peer& peer) {
    for (const auto& message : std::exchange(peer.membership.unsaid, {})) {
        std::visit([&](const auto& one) { peer.transfers.say_message(port::Lane::control, one); },
                   message);
    }
    if (peer.membership.new_world) {
        peer.transfers.say_message(port::Lane::control, *peer.membership.new_world);
    }
    for (const ContextId context : peer.membership.revocations) {
        peer.transfers.say_message(port::Lane::control, wire::Revoke{.context = context});
    }
}

// Revocations.

void Engine::revoke(Context& context) {
    if (std::exchange(context.revoked, true)) return;
    spread_revocation(context, nullptr);
    stop(context,
         Error(Errc::revoked, fmt::format("rank {} revoked the communicator", context.me.value()),
               {.rank = public_rank(context.me)}),
         false);
}

/// Tells all members except `from`, also those whose link comes up later: the rank that
/// revoked the communicator may be gone before all have heard.
void Engine::spread_revocation(Context& context, const Peer* from) {
    for (Pair* const pair : context.pairs) {
        if (pair == nullptr || (from != nullptr && pair->peer->node == from->node)) continue;
        // A member whose link was replaced has another record now, see renew().
        Peer* const peer = pair->peer->replaced ? find(pair->peer->node) : pair->peer;
        if (peer == nullptr || (peer->lost && !peer->unreachable)) continue;
        auto& told = peer->membership.revocations;
        if (told.size() == kMostRepeatedRevocations) told.pop_front();
        told.push_back(context.id);
        if (hears(*peer)) {
            peer->transfers.say_message(port::Lane::control, wire::Revoke{.context = context.id});
        } else {
            want(*peer);
        }
    }
}

Result<void> Engine::on_revoke(Peer& peer, const wire::Revoke& revoke) {
    if (const auto context = contexts_.find(revoke.context); context != contexts_.end()) {
        return take_revocation(*context->second, peer);
    }
    if (const auto pair = peer.pairs.find(revoke.context); pair != peer.pairs.end()) {
        pair->second->revoked_early = !pair->second->ended;
        return {};
    }
    auto& early = peer.membership.early_revocations;
    if (std::ranges::find(early, revoke.context) != early.end()) return {};
    if (early.size() == kMostEarlyRevocations) early.pop_front();
    early.push_back(revoke.context);
    return {};
}

Result<void> Engine::take_revocation(Context& context, const Peer& from) {
    // The communicator may have an older record of the peer, see renew().
    const auto found = std::ranges::find_if(context.pairs, [&](const Pair* pair) {
        return pair != nullptr && pair->peer->node == from.node;
    });
    if (found == context.pairs.end()) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer revoked communicator {:016x}, of which it is not a "
                                 "member",
                                 context.id.value()));
    }
    if (std::exchange(context.revoked, true)) return {};
    spread_revocation(context, &from);
    const Rank rank = (*found)->rank;
    stop(context,
         Error(Errc::revoked,
               fmt::format("the communicator was revoked, as rank {} says", rank.value()),
               {.rank = public_rank(rank)}),
         false);
    return {};
}

/// Applies a revocation that arrived before this side made the communicator.
void Engine::look_for_revocation(Context& context) {
    for (const auto& peer : peers_) {
        bool revoked = std::erase(peer->membership.early_revocations, context.id) != 0;
        if (const auto pair = peer->pairs.find(context.id); pair != peer->pairs.end()) {
            revoked = std::exchange(pair->second->revoked_early, false) || revoked;
        }
        if (!revoked) continue;
        if (const auto taken = take_revocation(context, *peer); !taken) {
            peer->transfers.cut_off(taken.error());
        }
    }
}

}  // namespace nexar::engine
