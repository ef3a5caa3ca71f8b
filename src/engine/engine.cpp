#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

Engine::Engine(const EngineOptions& options, BufferPool& pool)
    : options_(options),
      store_(pool),
      calls_(*this, options.calls, options.eager_limit, peers_),
      collectives_(*this, options.collectives, pool) {
    NEXAR_ASSERT(options_.eager_limit <= wire::kMaxEagerBytes);
    NEXAR_ASSERT(options_.reserve.payload >= options_.eager_limit && options_.reserve.headers > 0);
    NEXAR_ASSERT(options_.shared.payload >= options_.bulk_head);
}

Engine::~Engine() {
    NEXAR_ASSERT(idle(), "close() first, and wait until it is idle");
    for (const auto& [id, context] : contexts_) {
        for (Arrived* const message : context->matcher.all_arrived()) {
            context->matcher.remove(*message);
            store_.end(static_cast<InMessage&>(*message));
        }
    }
    for (const auto& peer : peers_) {
        for (const auto& [id, pair] : peer->pairs) {
            for (InMessage* message : pair->early) store_.end(*message);
        }
    }
}

Peer& Engine::add_peer(const NodeId& node) {
    const auto same = [&](const auto& peer) { return peer->node == node; };
    if (const auto found = std::ranges::find_if(peers_, same); found != peers_.end()) {
        return **found;
    }
    peers_.push_back(std::make_unique<Peer>(node, options_.shared, options_.hash_seed));
    return *peers_.back();
}

bool Engine::admit(Context& context, Operation& operation) {
    NEXAR_ASSERT(!operation.active);
    operation.context = &context;
    operation.error.reset();
    operation.active = true;
    ++pending_;
    if (aborted_) {
        fail(operation, *aborted_);
        return false;
    }
    if (closing_) {
        fail(operation, Error(Errc::closed, "the node is closed"));
        return false;
    }
    if (pending_ > options_.max_pending) {
        fail(operation, Error(Errc::too_many_pending,
                              fmt::format("{} operations are under way, the most that max_pending "
                                          "allows; wait for some of them first",
                                          options_.max_pending)));
        return false;
    }
    return true;
}

void Engine::finish(Operation& operation) {
    NEXAR_ASSERT(operation.active);
    operation.active = false;
    if (operation.give_up_at != TimePoint::max()) {
        giving_up_.erase({operation.give_up_at, &operation});
        operation.give_up_at = TimePoint::max();
    }
    // Whatever it would have ended with: all that ends after an abort ends with it.
    if (aborted_ && !(operation.error && operation.error->abort_code())) {
        operation.error = aborted_->within(
            {.operation = operation.error ? operation.error->operation() : std::string{}});
    }
    --pending_;
    done_.push_back(operation);
}

void Engine::fail(Operation& operation, Error error) {
    operation.error = std::move(error);
    finish(operation);
}

std::optional<Envelope> Engine::look(Context& context, const Pattern& pattern) {
    const Arrived* found = context.matcher.find(pattern);
    if (found == nullptr) return std::nullopt;
    return envelope_of(*static_cast<const InMessage*>(found));
}

bool Engine::idle() const noexcept {
    return pending_ == 0 &&
           std::ranges::all_of(peers_, [](const auto& peer) { return peer->link == nullptr; });
}

void Engine::close(const std::optional<Error>& why) {
    if (std::exchange(closing_, true)) return;
    const Error reason(Errc::closed, "the node was closed");
    for (const auto& [id, context] : contexts_) {
        for (PostedReceive* const posted : context->matcher.all_posted()) {
            context->matcher.remove(*posted);
            fail(static_cast<ReceiveOperation&>(*posted), reason);
        }
        while (ProbeOperation* probe = context->probes.pop_front()) fail(*probe, reason);
    }
    while (SendOperation* send = locals_.first()) cancel_local(*send, reason);
    calls_.close();
    for (const auto& [id, context] : contexts_) collectives_.close(*context, why);
    offer_rests();
    for (const auto& peer : peers_) {
        if (peer->link == nullptr) {
            on_down(*peer, reason);
        } else {
            if (why) send_control(*peer, wire::report_of(*why, {}));
            peer->link->close("the node was closed");
        }
    }
}

}  // namespace nexar::engine
