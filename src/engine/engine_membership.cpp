// Verdicts on the members of the cluster, and what ends with them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/engine.hpp"
#include "engine/memory_setup.hpp"

namespace nexar::engine {

namespace {

/// "rank 2 was lost in epoch 5", "ranks 1, 2 were lost in epoch 5; rank 4 was lost in epoch 6".
Error error_of_loss(const Context& context) {
    std::string text;
    for (auto at = context.lost.begin(); at != context.lost.end();) {
        const Epoch epoch = at->first;
        std::vector<std::uint32_t> ranks;
        for (; at != context.lost.end() && at->first == epoch; ++at) {
            ranks.push_back(at->second.value());
        }
        text += fmt::format("{}{} {} {} lost in epoch {}", text.empty() ? "" : "; ",
                            ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "),
                            ranks.size() == 1 ? "was" : "were", epoch.value());
    }
    return {Errc::membership_changed,
            std::move(text),
            {.rank = public_rank(context.lost.front().second)}};
}

}  // namespace

void Engine::set_view(const View& view) {
    forget_former_peers();
    view_ = view;
    for (const Member& member : view.members) {
        if (Peer* const peer = find(member.node)) peer->rank = member.rank;
    }
    for (const auto& peer : peers_) {
        if (peer->evicted && in_view(peer->node)) peer->replaced = true;
    }
    agreements_.set_view(view);
}

/// Frees the peers that views before the current one lost. Those that the current one lost may
/// still await their eviction.
void Engine::forget_former_peers() {
    std::erase_if(peers_, [this](const std::unique_ptr<Peer>& peer) {
        const bool was_member = peer->rank || peer->evicted;
        if (!was_member || (in_view(peer->node) && !peer->replaced) || is_needed(*peer)) {
            return false;
        }
        if (!peer->replaced) former_.add(peer->node, peer->evicted);
        return true;
    });
}

/// True while anything refers to a former member: a communicator that contains it, a link, a call,
/// or something that nobody has polled yet.
bool Engine::is_needed(Peer& peer) {
    if (peer.evicted && peer.settled) {
        // Nothing of it is delivered any more, so nobody waits for what it said in communicators
        // that this side has not made.
        std::erase_if(peer.pairs, [this](const auto& entry) {
            if (entry.second->context != nullptr) return false;
            messages_.clear(*entry.second);
            return true;
        });
        peer.last_pair = nullptr;
    }
    const PeerMessages& messages = peer.messages;
    const PeerCalls& calls = peer.calls;
    const PeerMembership& membership = peer.membership;
    return !peer.pairs.empty() || peer.transfers.in_use() || !messages.streaming.empty() ||
           !messages.announced.empty() || !messages.asking.empty() || !messages.bulk_in.empty() ||
           !messages.incomplete.empty() || !calls.waiting.empty() || !calls.sent.empty() ||
           !calls.in.empty() || membership.waiting != 0 ||
           std::ranges::any_of(membership.hinted, std::identity{});
}

void Engine::evict(std::span<const NodeId> nodes, Epoch epoch) {
    std::vector<Peer*> evicted;
    evicted.reserve(nodes.size());
    for (const NodeId& node : nodes) {
        add_peer(node);
        // Communicators may have an older record of a peer whose link was lost before.
        for (const auto& peer : peers_) {
            if (peer->node != node || peer->evicted) continue;
            peer->evicted = epoch;
            peer->unreachable = false;
            peer->replaced = peer->replaced || in_view(node);
            peer->lost = error_of_eviction(epoch);
            peer->membership.revocations.clear();
            peer->membership.new_world.reset();
            evicted.push_back(peer.get());
        }
    }
    for (const auto& [id, context] : contexts_) stop_if_lost(*context);
    for (Peer* const peer : evicted) {
        const Error reason = error_of_eviction(epoch);
        recording_.link(EventKind::link_given_up, peer->node,
                        static_cast<std::uint16_t>(reason.code()));
        if (peer->transfers.has_links()) peer->transfers.sever(reason);
        if (!peer->transfers.ending()) lose(*peer, reason);
    }
}

bool Engine::release(const NodeId& node, TimePoint since) {
    bool linked = false;
    for (const auto& peer : peers_) {
        if (peer->node != node || peer->lost || (!peer->replaced && in_view(node))) continue;
        peer->goodbye = true;
        const Error reason(Errc::link_closed, "the peer left the cluster");
        const bool heard = !peer->transfers.in_tunnel() && peer->transfers.heard_since(since);
        linked = linked || heard;
        if (heard || peer->transfers.ending()) continue;
        if (!peer->transfers.has_links())
            lose(*peer, reason);
        else
            peer->transfers.sever(reason);
    }
    return linked;
}

/// Ends the operations of a communicator that has lost members since it was last looked at.
void Engine::stop_if_lost(Context& context) {
    const std::size_t before = context.lost.size();
    for (const Pair* const pair : context.pairs) {
        if (pair == nullptr || !pair->peer->evicted) continue;
        const std::pair<Epoch, Rank> lost(*pair->peer->evicted, pair->rank);
        if (std::ranges::find(context.lost, lost) == context.lost.end()) {
            context.lost.push_back(lost);
        }
    }
    if (context.lost.size() == before) return;
    std::ranges::sort(context.lost);
    stop(context, error_of_loss(context), true);
}

/// Ends the operations of a communicator, now and from now on.
void Engine::stop(Context& context, const Error& reason, bool tell) {
    // Later operations fail as the first ones did, but name all ranks that are lost.
    const bool first = !context.over;
    if (first || context.over->code() == reason.code()) context.over = reason;
    if (!first) return;
    messages_.stop(context, reason);
    collectives_.stop(context, reason, tell);
    if (std::ranges::find(exchanging_, &context) != exchanging_.end()) {
        agree_on_memory(context, false);
    }
    for (Pair* const pair : context.pairs) {
        if (pair != nullptr) pair->peer->segments.erase(context.id.value());
    }
    transfers_.offer_rests();
}

void Engine::set_unreachable(const NodeId& node, const Error& reason) {
    Peer* const peer = find(node);
    if (peer == nullptr || peer->lost) return;
    peer->unreachable = true;
    peer->lost = reason;
    if (!peer->transfers.up()) {
        if (!peer->transfers.ending()) lose(*peer, reason);
    } else {
        messages_.halt(*peer, reason);
        messages_.end_receives(*peer, reason);
        calls_.halt(*peer, reason);
    }
    abort_collectives(*peer, reason);
    settle_older(*peer, reason);
    agreements_.cannot_reach(node, reason);
    look_at_exchanges();
    transfers_.offer_rests();
}

void Engine::set_reachable(const NodeId& node) {
    Peer* const peer = find(node);
    if (peer == nullptr || !peer->unreachable || peer->transfers.over()) return;
    peer->unreachable = peer->settled = false;
    peer->lost.reset();
    if (peer->transfers.usable()) tell_again(*peer);
    agreements_.connected(node);
}

void Engine::set_minority(bool minority) {
    if (expelled_ || minority == halted_.has_value()) return;
    if (!minority) {
        halted_.reset();
        return;
    }
    halt(Error(Errc::minority_partition,
               "a process that cannot reach a majority of the members must not go on alone"));
}

void Engine::expel(Epoch epoch) {
    if (std::exchange(expelled_, true)) return;
    halt(Error(Errc::evicted,
               fmt::format("the other members agreed in epoch {} that this process is gone, "
                           "because they could not reach it; the process must join again",
                           epoch.value())));
}

/// Ends every operation. Does not break what is in flight: this side tells its peers what it
/// withdraws, so that operations can run again later.
void Engine::halt(const Error& reason) {
    halted_ = reason;
    for (const auto& [id, context] : contexts_) messages_.abort(*context, reason);
    messages_.close_local(reason.within({.operation = "send"}));
    for (const auto& peer : peers_) messages_.halt(*peer, reason);
    calls_.halt(reason);
    agreements_.end_all(reason);
    const std::vector<Context*> exchanging = exchanging_;
    for (Context* const context : exchanging) agree_on_memory(*context, false);
    for (const auto& [id, context] : contexts_) collectives_.halt(*context, reason);
    transfers_.offer_rests();
}

}  // namespace nexar::engine
