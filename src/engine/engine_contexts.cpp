// Communicators: how they begin here, how peers learn of them, and how they end.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

/// A peer that introduces a communicator whose parent ended longer ago is taken for one that is
/// ahead; max_early_contexts bounds what this costs.
constexpr std::size_t kMostEndedParents = 4096;

wire::ContextBegin introduction(const Context& context) {
    return {.context = context.id,
            .origin = context.origin,
            .rank = context.me,
            .size = static_cast<std::uint32_t>(context.pairs.size())};
}

std::string described(const wire::ContextBegin& begun) {
    return fmt::format("rank {} of {} in child {} of {:016x}, colour {}, epoch {}",
                       begun.rank.value(), begun.size, begun.origin.creation,
                       begun.origin.parent.value(), begun.origin.colour,
                       begun.origin.epoch.value());
}

/// Fails when the peer uses the same id for another communicator.
Result<void> compare(const Context& context, Rank peer, const wire::ContextBegin& begun) {
    wire::ContextBegin expected = introduction(context);
    expected.rank = peer;
    if (begun == expected) return {};
    return Error(
        Errc::protocol_violation,
        fmt::format("the peer uses id {:016x} for another communicator: {} there, {} here; make "
                    "communicators in the same order on all ranks",
                    context.id.value(), described(begun), described(expected)));
}

}  // namespace

Pair& Engine::pair_of(Peer& peer, ContextId context) {
    auto& owned = peer.pairs[context];
    if (!owned) owned = std::make_unique<Pair>(peer, context, options_.reserve);
    return *owned;
}

Context& Engine::add_context(ContextId id, std::span<const NodeId> members, Rank me,
                             const wire::ContextOrigin& origin) {
    NEXAR_ASSERT(!contexts_.contains(id) && me.value() < members.size());
    auto owned = std::make_unique<Context>(id, me, static_cast<std::uint32_t>(members.size()),
                                           options_.hash_seed);
    Context& context = *contexts_.emplace(id, std::move(owned)).first->second;
    context.origin = origin;
    context.index = next_index_++;
    recording_.communicator(EventKind::communicator_made, context);
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
        if (rank == me.value()) continue;
        Pair& pair = pair_of(add_peer(members[rank]), id);
        NEXAR_ASSERT(!pair.ended, "a communicator must be made only once");
        pair.context = &context;
        pair.rank = Rank(rank);
        context.pairs[rank] = &pair;
        if (pair.peer->lost) context.collectives.some_lost = true;
        if (const auto same = meet(pair); !same) pair.peer->transfers.cut_off(same.error());
        messages_.begin(pair);
    }
    agreements_.add(id, members, me, origin.parent);
    stop_if_lost(context);
    look_for_revocation(context);
    return context;
}

void Engine::end_context(Context& context) {
    collectives_.end(context);
    transfers_.offer_rests();
    messages_.end(context);
    agreements_.end(context.id);
    for (Pair* const pair : context.pairs) {
        if (pair == nullptr) continue;
        Messages::leave(*pair);
        pair->context = nullptr;
        pair->peer->segments.erase(context.id.value());
        pair->ended = true;
        pair->end_due = pair->begun_out;
        pair->collectives_called = context.collectives.next;
        messages_.unblock(*pair);
    }
    recording_.communicator(EventKind::communicator_ended, context);
    const ContextId id = context.id;
    if (context.creations != 0) remember_ended(id);
    // A peer's introduction may still be on its way. A node that joined does not know the
    // communicator that its first world was made from, and makes no other one from it.
    if (!contexts_.contains(context.origin.parent)) remember_ended(context.origin.parent);
    contexts_.erase(id);
}

void Engine::remember_ended(ContextId parent) {
    if (std::ranges::find(ended_parents_, parent) != ended_parents_.end()) return;
    if (ended_parents_.size() == kMostEndedParents) ended_parents_.pop_front();
    ended_parents_.push_back(parent);
}

/// Once both sides have made a communicator, each introduces it to the other, which opens the
/// reserve.
Result<void> Engine::meet(Pair& pair) {
    if (pair.context == nullptr || !pair.begun_in) return {};
    NEXAR_TRY(compare(*pair.context, pair.rank, *pair.begun_in));
    messages_.unblock(pair);
    collectives_.drain(pair);
    return {};
}

/// True for the origin of a communicator that this side has ended.
bool Engine::has_ended(const wire::ContextOrigin& origin) const {
    const auto parent = contexts_.find(origin.parent);
    if (parent == contexts_.end()) {
        return std::ranges::find(ended_parents_, origin.parent) != ended_parents_.end();
    }
    return origin.creation < parent->second->creations;
}

/// The pair of a peer in a communicator that the peer has introduced.
Result<Pair*> Engine::introduced_pair(Peer& peer, ContextId context) {
    Pair* pair = peer.last_pair;
    if (pair != nullptr && pair->context_id == context) return pair;
    const auto found = peer.pairs.find(context);
    if (found == peer.pairs.end() || !found->second->begun_in) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer uses communicator {:016x} without having introduced it",
                                 context.value()));
    }
    peer.last_pair = found->second.get();
    return peer.last_pair;
}

Result<void> Engine::on_context_begin(Peer& peer, const wire::ContextBegin& begun) {
    if (const auto found = peer.pairs.find(begun.context); found != peer.pairs.end()) {
        Pair& pair = *found->second;
        if (pair.begun_in) {
            return Error(Errc::protocol_violation, "the peer introduced one communicator twice");
        }
        pair.begun_in = begun;
        return meet(pair);
    }
    const bool ended = has_ended(begun.origin);
    const auto others = std::ranges::count_if(peer.pairs, [&](const auto& entry) {
        return entry.second->context == nullptr && entry.second->ended == ended;
    });
    const std::size_t most = ended ? options_.max_ended_contexts : options_.max_early_contexts;
    if (static_cast<std::size_t>(others) >= most) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the peer uses more than {} communicators that this side {}", most,
                                 ended ? "has ended" : "has not made"));
    }
    Pair& pair = pair_of(peer, begun.context);
    pair.begun_in = begun;
    pair.ended = ended;
    return {};
}

Result<void> Engine::on_context_end(Peer& peer, const wire::ContextEnd& ended) {
    NEXAR_TRY_VALUE(pair, introduced_pair(peer, ended.context));
    peer.last_pair = nullptr;
    pair->begun_in.reset();
    if (pair->context != nullptr) collectives_.ended(*pair, ended.collectives);
    forget_if_over(*pair);
    return {};
}

bool Engine::introduce(Pair& pair) {
    PeerTransfers& transfers = pair.peer->transfers;
    if (!transfers.usable()) return false;
    if (!pair.begun_out) {
        pair.begun_out = transfers.write_message(port::Lane::eager, introduction(*pair.context));
    }
    return pair.begun_out;
}

bool Engine::say_end(Pair& pair) {
    if (!collectives_.flush_said(pair)) return false;
    PeerTransfers& transfers = pair.peer->transfers;
    const wire::ContextEnd end{.context = pair.context_id, .collectives = pair.collectives_called};
    if (pair.end_due && transfers.usable() && !transfers.write_message(port::Lane::eager, end)) {
        return false;
    }
    pair.end_due = false;
    forget_if_over(pair);
    return true;
}

void Engine::forget_if_over(Pair& pair) {
    const bool begun = pair.begun_in && !pair.peer->settled;
    if (!pair.ended || pair.end_due || begun || pair.blocked) return;
    Peer& peer = *pair.peer;
    if (peer.last_pair == &pair) peer.last_pair = nullptr;
    peer.pairs.erase(pair.context_id);
}

}  // namespace nexar::engine
