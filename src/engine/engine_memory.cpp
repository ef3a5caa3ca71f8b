// How communicators get the memory that their ranks share, see MemorySetup.

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "compute/reduce.hpp"
#include "engine/engine.hpp"
#include "engine/memory_setup.hpp"

namespace nexar::engine {

namespace {

/// How long a rank waits for the segments of others that have called the first collective.
constexpr Duration kExchangeTime = std::chrono::seconds(2);

}  // namespace

void Engine::want_memory(Context& context, std::size_t bytes) {
    NEXAR_ASSERT(context.collectives.next == 0);
    if (context.pairs.size() < 2 || bytes == 0) return;
    context.memory_setup = std::make_unique<MemorySetup>();
    context.memory_setup->bytes = bytes;
}

/// Called with the first collective of a communicator: shares this rank's segment, and takes the
/// number of the agreement.
void Engine::begin_memory(Context& context, Duration timeout) {
    MemorySetup& setup = *context.memory_setup;
    setup.state = MemorySetup::State::exchanges;
    setup.until = recording_.now() + kExchangeTime;
    CollectiveOperation& agreement = setup.agreement;
    agreement.internal = true;
    agreement.terms = {.what = schedule::Collective::all_reduce,
                       .operator_name = "min",
                       .agrees_on_memory = true,
                       .count = 1};
    agreement.reducer = compute::reducer_for(DType::u8, ReduceOp::min).value();
    agreement.in_place = true;
    agreement.chunks = schedule::Chunks::even(1, static_cast<std::uint32_t>(context.pairs.size()));
    agreement.output = {setup.agreed};
    agreement.timeout = timeout;
    agreement.number = context.collectives.next;
    context.collectives.internal = 1;
    if (!admit(context, agreement)) {
        if (agreement.error) collectives_.pass_over(context, *agreement.error);
        return;  // its end follows
    }
    collectives_.reserve(context, agreement);
    exchanging_.push_back(&context);
    if (share_segment(context)) {
        look_at_memory(context);
    } else {
        agree_on_memory(context, false);
    }
}

bool Engine::share_segment(Context& context) {
    MemorySetup& setup = *context.memory_setup;
    if (!options_.allocate_shared) return false;
    auto made = options_.allocate_shared(setup.bytes);
    if (!made) {
        NEXAR_LOG_INFO("collectives do not use shared memory: {}", made.error().cause());
        return false;
    }
    setup.own = *std::move(made);
    return std::ranges::all_of(context.pairs, [&](Pair* pair) {
        return pair == nullptr || pair->peer->transfers.share(context.id.value(), setup.own);
    });
}

/// Agrees once all segments are here, or some will never be.
void Engine::look_at_memory(Context& context) {
    bool all = true;
    for (const Pair* const pair : context.pairs) {
        if (pair == nullptr) continue;
        if (pair->peer->lost) return agree_on_memory(context, false);
        all = all && pair->peer->segments.contains(context.id.value());
    }
    if (all) agree_on_memory(context, true);
}

void Engine::agree_on_memory(Context& context, bool possible) {
    MemorySetup& setup = *context.memory_setup;
    std::erase(exchanging_, &context);
    setup.state = MemorySetup::State::agrees;
    // A rank that ends the communicator tells those that know it, and in memory each rank may wait
    // for every other one.
    for (Pair* const pair : context.pairs) {
        if (pair != nullptr && possible) possible = pair->begun_out || introduce(*pair);
    }
    setup.agreed[0] = possible ? std::byte{1} : std::byte{0};
    collectives_.begin(setup.agreement);
}

void Engine::advance_memory(TimePoint now) {
    const std::vector<Context*> exchanging = exchanging_;
    for (Context* const context : exchanging) {
        if (now >= context->memory_setup->until) agree_on_memory(*context, false);
    }
}

void Engine::release_memory() noexcept {
    NEXAR_ASSERT(closing_ && pending_ == 0);
    for (const auto& [id, context] : contexts_) context->collectives.memory.reset();
}

/// Something happened that exchanges may wait for.
void Engine::look_at_exchanges() {
    const std::vector<Context*> exchanging = exchanging_;
    for (Context* const context : exchanging) look_at_memory(*context);
}

void Engine::on_shared(Peer& peer, const port::Shared& shared) {
    if (names_buffer(shared.name)) return peer.buffers.add(shared.name, shared.memory);
    const auto context = contexts_.find(ContextId(shared.name));
    if (context != contexts_.end() && context->second->over) return;
    peer.segments[shared.name] = shared.memory;
    look_at_exchanges();
}

std::uint64_t Engine::add_buffer(std::shared_ptr<port::SharedMemory> memory) {
    return collectives_.buffers().add(std::move(memory));
}

void Engine::remove_buffer(std::uint64_t name) noexcept {
    collectives_.buffers().remove(name);
    for (const auto& peer : peers_) peer->buffers.forget(name);
}

/// Keeps a call until the ranks have agreed, or its timeout ends.
void Engine::hold(Context& context, CollectiveOperation& collective) {
    MemorySetup& setup = *context.memory_setup;
    collectives_.reserve(context, collective);
    setup.until = std::min(setup.until, collective.expiry());
    collectives_.shorten(setup.agreement, collective.expiry());
    // On a rank that calls after the agreement nothing holds it, and all must choose alike.
    collective.begins_late = false;
    setup.held.push_back(collective.number);
}

/// Returns true if the call waits for the agreement; then the agreement ends, and the call with it.
bool Engine::cancel_held(const CollectiveOperation& collective) {
    if (!collective.active || !collective.reserved) return false;
    const auto& setup = collective.context->memory_setup;
    if (setup == nullptr ||
        std::ranges::find(setup->held, collective.number) == setup->held.end()) {
        return false;
    }
    setup->cancelled.push_back(collective.number);
    if (setup->state == MemorySetup::State::exchanges) agree_on_memory(*collective.context, false);
    collectives_.cancel(setup->agreement);
    return true;
}

/// Called when the agreement has ended, with or without success: lets the calls begin.
void Engine::on_agreement(CollectiveOperation& agreement) {
    Context& context = *agreement.context;
    const std::unique_ptr<MemorySetup> setup = std::move(context.memory_setup);
    std::erase(exchanging_, &context);
    std::vector<std::shared_ptr<const port::PeerMemory>> segments(context.pairs.size());
    for (std::size_t rank = 0; rank < context.pairs.size(); ++rank) {
        Pair* const pair = context.pairs[rank];
        if (pair == nullptr) continue;
        const auto found = pair->peer->segments.find(context.id.value());
        if (found == pair->peer->segments.end()) continue;
        segments[rank] = std::move(found->second);
        pair->peer->segments.erase(found);
    }
    if (!agreement.error && !context.over && setup->agreed[0] == std::byte{1}) {
        set_memory(context, setup->own, std::move(segments));
    }
    for (const std::uint64_t number : setup->held) {
        CollectiveOperation* const call = context.collectives.find(number);
        if (call == nullptr || !call->reserved) continue;
        if (closing_) {
            collectives_.abandon(*call, Error(Errc::closed, "the node was closed"));
            continue;
        }
        collectives_.begin(*call);
        if (std::ranges::find(setup->cancelled, number) != setup->cancelled.end()) {
            collectives_.cancel(*call);
        }
    }
    transfers_.offer_rests();
}

Operation* Engine::poll_done() {
    while (Operation* const done = done_.pop_front()) {
        if (!done->internal) return done;
        on_agreement(static_cast<CollectiveOperation&>(*done));
    }
    return nullptr;
}

}  // namespace nexar::engine
