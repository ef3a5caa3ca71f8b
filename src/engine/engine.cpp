#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/memory_setup.hpp"

namespace nexar::engine {

namespace {

Transfers::Limits transfer_limits(const EngineOptions& options) {
    Transfers::Limits limits{.hash_seed = options.hash_seed};
    const auto set = [&](port::Lane lane, std::size_t most) {
        limits.max_backlog[static_cast<std::size_t>(lane)] = most;
    };
    set(port::Lane::control, options.max_control_backlog);
    set(port::Lane::rpc, options.calls.max_backlog);
    return limits;
}

MessageLimits message_limits(const EngineOptions& options) {
    return {.eager_limit = options.eager_limit,
            .bulk_head = options.bulk_head,
            .shared = options.shared,
            .max_asking = options.max_control_backlog,
            .cancel_patience = options.cancel_patience,
            .awaits_verdicts = options.awaits_verdicts};
}

}  // namespace

Engine::Engine(const EngineOptions& options, BufferPool& pool)
    : Services(options.recorder),
      options_(options),
      transfers_(*this, transfer_limits(options)),
      messages_(*this, message_limits(options), pool),
      calls_(*this, options.calls, options.eager_limit, peers_),
      collectives_(*this, options.collectives, pool),
      agreements_(*this) {
    NEXAR_ASSERT(options_.eager_limit <= wire::kMaxEagerBytes);
    NEXAR_ASSERT(options_.reserve.payload >= options_.eager_limit && options_.reserve.headers > 0);
    NEXAR_ASSERT(options_.shared.payload >= options_.bulk_head);
}

Engine::~Engine() {
    NEXAR_ASSERT(idle(), "close() must precede, and idle() must be true");
    for (const auto& [id, context] : contexts_) messages_.clear(*context);
    for (const auto& peer : peers_) {
        for (const auto& [id, pair] : peer->pairs) messages_.clear(*pair);
    }
}

Peer& Engine::add_peer(const NodeId& node) {
    if (Peer* const found = find(node)) return *found;
    Peer& made = *peers_.emplace_back(std::make_unique<Peer>(transfers_, node, options_.shared));
    if (const Member* const member = view_.find(node)) {
        made.rank = member->rank;
    } else if (const FormerPeers::Former* const former = former_.find(node)) {
        made.evicted = former->evicted;
        made.lost = former->reason();
        made.settled = true;
    }
    return made;
}

bool Engine::admit(Context& context, Operation& operation) {
    NEXAR_ASSERT(!operation.active);
    operation.context = &context;
    operation.error.reset();
    operation.active = true;
    ++pending_;
    recording_.started(operation);
    if (aborted_) {
        fail(operation, *aborted_);
        return false;
    }
    if (closing_) {
        fail(operation, Error(Errc::closed, "the node is closed"));
        return false;
    }
    if (halted_) {
        fail(operation, *halted_);
        return false;
    }
    // Calls are between two nodes, whatever happens to others. Agreements are for what comes after.
    if (context.over && operation.kind() != Operation::Kind::call &&
        operation.kind() != Operation::Kind::agreement) {
        fail(operation, *context.over);
        return false;
    }
    if (pending_ > options_.max_pending) {
        fail(operation,
             Error(Errc::too_many_pending,
                   fmt::format("{} operations are pending, which is the maximum (max_pending); "
                               "wait for some of them first",
                               options_.max_pending)));
        return false;
    }
    return true;
}

void Engine::fail(Operation& operation, Error error) {
    operation.error = std::move(error);
    finish(operation);
}

void Engine::want(Peer& peer) {
    if (peer.transfers.up() || std::exchange(peer.wanted, true)) return;
    wanted_.push_back(peer.node);
}

std::optional<NodeId> Engine::poll_wanted() {
    if (wanted_.empty()) return std::nullopt;
    const NodeId node = wanted_.front();
    wanted_.pop_front();
    if (Peer* const peer = find(node)) renew(*peer);
    return node;
}

void Engine::start(Context& context, SendOperation& send) {
    if (admit(context, send)) messages_.start(context, send);
}

void Engine::start(Context& context, ReceiveOperation& receive) {
    receive.message = nullptr;
    if (admit(context, receive)) messages_.start(context, receive);
}

void Engine::start(Context& context, ProbeOperation& probe) {
    if (admit(context, probe)) messages_.start(context, probe);
}

void Engine::start(InMessage& message, ReceiveOperation& receive) {
    receive.message = nullptr;
    if (admit(*message.context, receive)) {
        messages_.start(message, receive);
    } else {
        messages_.drop(message);
    }
}

void Engine::start(Context& context, CallOperation& call) {
    if (!admit(context, call)) return;
    if (call.node && epoch() != Epoch(0) && !in_view(*call.node) && find(*call.node) == nullptr) {
        // Without a record of the node, this would be a call of this node to itself.
        if (former_.find(*call.node) == nullptr) {
            return fail(call,
                        Error(Errc::membership_changed,
                              fmt::format("the peer is not a member of epoch {}", epoch().value()),
                              {.rank = public_rank(call.to), .operation = "call"}));
        }
        add_peer(*call.node);
    }
    calls_.start(context, call);
}

void Engine::start(Context& context, CollectiveOperation& collective) {
    if (context.memory_setup && context.memory_setup->state == MemorySetup::State::wanted)
        [[unlikely]] {
        begin_memory(context, collective.timeout);
    }
    collective.number = context.collectives.next;
    if (admit(context, collective)) {
        if (context.memory_setup) [[unlikely]] {
            hold(context, collective);
        } else {
            collectives_.start(context, collective);
        }
    } else if (collective.error) {
        collectives_.pass_over(context, *collective.error);
    }
    transfers_.offer_rests();
}

bool Engine::publish(Context& context, CollectiveOperation& collective) {
    NEXAR_ASSERT(!collective.active);
    if (aborted_ || closing_ || halted_ || context.over || context.memory_setup ||
        pending_ >= options_.max_pending) {
        return false;
    }
    collective.context = &context;
    if (!collectives_.publish(context, collective)) return false;
    collective.error.reset();
    collective.active = true;
    ++pending_;
    return true;
}

void Engine::enter_published(TimePoint now, CollectiveOperation& collective) {
    recording_.advance(now);
    recording_.started(collective);
    collectives_.enter_published(now, collective);
    transfers_.offer_rests();
}

void Engine::start(Context& context, CollectiveOperation& counts, CollectiveOperation& collective) {
    start(context, counts);
    collective.number = context.collectives.next;
    if (admit(context, collective)) {
        collectives_.reserve(context, collective);
    } else if (collective.error) {
        collectives_.pass_over(context, *collective.error);
    }
}

void Engine::begin(CollectiveOperation& collective) {
    collectives_.begin(collective);
    transfers_.offer_rests();
}

void Engine::abandon(CollectiveOperation& collective, const Error& error) {
    collectives_.abandon(collective, error);
    transfers_.offer_rests();
}

void Engine::cancel(CollectiveOperation& collective) {
    if (cancel_held(collective)) return transfers_.offer_rests();
    collectives_.cancel(collective);
    transfers_.offer_rests();
}

bool Engine::poll_memory() {
    if (!collectives_.poll_memory()) return false;
    transfers_.offer_rests();
    return true;
}

void Engine::advance(TimePoint now) {
    recording_.advance(now);
    calls_.advance(now);
    collectives_.advance(now);
    messages_.advance(now);
    agreements_.advance(now);
    if (!exchanging_.empty()) [[unlikely]] {
        advance_memory(now);
    }
    transfers_.offer_rests();
}

std::optional<TimePoint> Engine::next_deadline() const noexcept {
    std::optional<TimePoint> first = collectives_.next_deadline();
    const auto add = [&](const std::optional<TimePoint>& due) {
        if (due && (!first || *due < *first)) first = due;
    };
    if (calls_.has_deadline()) add(calls_.next_deadline());
    if (messages_.has_deadline()) add(messages_.next_deadline());
    add(agreements_.next_deadline());
    for (const Context* const context : exchanging_) {
        const TimePoint due = context->memory_setup->until;
        if (!first || due < *first) first = due;
    }
    return first;
}

void Engine::say_goodbye_through_tunnels() {
    for (const auto& peer : peers_) {
        PeerTransfers& transfers = peer->transfers;
        if (transfers.in_tunnel()) transfers.say_message(port::Lane::control, goodbye());
    }
}

bool Engine::idle() const noexcept {
    return pending_ == 0 && std::ranges::none_of(peers_, [](const auto& peer) {
               return peer->transfers.has_links();
           });
}

void Engine::close(const std::optional<Error>& why, bool has_left) {
    if (std::exchange(closing_, true)) return;
    const Error reason(Errc::closed, "the node was closed");
    for (const auto& [id, context] : contexts_) messages_.close(*context, reason);
    messages_.close_local(reason);
    calls_.close();
    agreements_.end_all(reason);
    const std::vector<Context*> exchanging = exchanging_;
    for (Context* const context : exchanging) agree_on_memory(*context, false);
    for (const auto& [id, context] : contexts_) collectives_.close(*context, why);
    transfers_.offer_rests();
    for (const auto& peer : peers_) {
        PeerTransfers& transfers = peer->transfers;
        if (!transfers.up()) {
            if (!transfers.ending()) lose(*peer, reason);
            continue;
        }
        if (has_left && transfers.in_tunnel()) {
            transfers.sever(reason);
            continue;
        }
        if (!why && epoch() != Epoch(0)) {
            transfers.say_message(port::Lane::control, goodbye());
        }
        if (why) transfers.say_message(port::Lane::control, wire::report_of(*why, {}));
        transfers.close(reason.cause());
    }
}

}  // namespace nexar::engine
