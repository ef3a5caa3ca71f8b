// Collectives in shared memory: the operations of a communicator run one after the other, in the
// order of their numbers.

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/assert.hpp"
#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

bool CollectiveRunner::set_memory(Context& context, std::shared_ptr<port::SharedMemory> own,
                                  std::vector<std::shared_ptr<const port::PeerMemory>> others) {
    ContextCollectives& here = context.collectives;
    NEXAR_ASSERT(here.memory == nullptr && others.size() == context.pairs.size());
    const std::size_t bytes = own->bytes().size();
    for (const auto& other : others) {
        if (other != nullptr && other->bytes().size() != bytes) return false;
    }
    const auto layout = MemoryLayout::of(bytes);
    if (!layout || context.pairs.size() < 2) return false;
    here.memory = std::make_unique<MemoryCollectives>(
        context, MemorySegments(std::move(own), std::move(others), context.me.value(), *layout));
    here.profile.memory.slot_bytes = layout->slot_bytes;
    here.profile.memory.buffer_bytes = layout->buffer_bytes;
    here.profile_hash = here.profile.hash();
    here.plans.clear();
    return true;
}

/// Runs an operation that nothing precedes before any bookkeeping: what it publishes is visible
/// early, and it may end at once. Returns false if it is still to be entered.
bool CollectiveRunner::run_at_once(Context& context, CollectiveOperation& operation) {
    const ContextCollectives& here = context.collectives;
    MemoryCollectives& memory = *here.memory;
    const bool plain =
        here.early.empty() && here.heard_of(operation.number) == nullptr && !here.some_lost;
    if (!plain || !memory.queue.empty()) return false;
    begin_call(memory, operation);
    const MemoryExecutor::State state = memory.executor.advance();
    if (memory.executor.take_published()) nudge_all(memory);
    if (state != MemoryExecutor::State::done) return false;
    end_call(memory);
    operation.unfinished = 0;
    conclude(operation);
    return true;
}

void CollectiveRunner::enter_memory(Context& context, CollectiveOperation& operation) {
    MemoryCollectives& memory = *context.collectives.memory;
    if (!context.collectives.early.empty()) take_early(context, operation);
    if (operation.failure) return;
    if (const Error* const known = context.collectives.heard_of(operation.number)) {
        return fail(operation, *known, false);
    }
    operation.in_memory_queue = true;
    memory.queue.push_back(operation);
    if (!std::exchange(memory.polled, true)) polled_.push_back(memory);
    pump_memory(memory);
}

bool CollectiveRunner::poll_all_memory() {
    bool any = false;
    for (MemoryCollectives* at = polled_.first(); at != nullptr;) {
        MemoryCollectives* const next = decltype(polled_)::after(*at);
        any = pump_memory(*at) || any;
        at = next;
    }
    return any;
}

/// Runs the operations of a communicator as far as possible. Returns true if anything happened.
bool CollectiveRunner::pump_memory(MemoryCollectives& memory) {
    if (std::exchange(memory.pumping, true)) return false;
    bool any = false;
    while (CollectiveOperation* const operation = memory.queue.first()) {
        if (!memory.begun && !begin_memory(memory, *operation)) break;
        if (memory.queue.first() != operation) continue;  // it cannot run
        const MemoryExecutor::State state = memory.executor.advance();
        if (memory.executor.take_published()) {
            any = true;
            nudge_all(memory);
        }
        if (state == MemoryExecutor::State::done) {
            any = true;
            end_call(memory);
            memory.queue.erase(*operation);
            operation->in_memory_queue = false;
            operation->unfinished = 0;
            conclude(*operation);
            continue;
        }
        if (state == MemoryExecutor::State::waiting) {
            if (memory.context->collectives.some_lost && end_if_lost(memory, *operation)) continue;
            break;
        }
        if (operation->silent) break;  // it waits for the reason
        any = true;
        Pair& pair = *memory.context->pairs[memory.executor.culprit()];
        if (state == MemoryExecutor::State::differs) {
            differ(*operation, pair);
        } else {
            gave_up(*operation, pair.rank);
        }
        break;
    }
    if (memory.queue.empty() && std::exchange(memory.polled, false)) polled_.erase(memory);
    memory.pumping = false;
    return any;
}

/// Begins the first operation of the queue, which may end at once. Returns false if it must not
/// begin because all operations are about to end.
bool CollectiveRunner::begin_memory(MemoryCollectives& memory, CollectiveOperation& operation) {
    if (memory.context->collectives.is_over(operation.number)) return false;
    begin_call(memory, operation);
    if (memory.context->collectives.some_lost) end_if_absent(memory, operation);
    return true;
}

void CollectiveRunner::begin_call(MemoryCollectives& memory, const CollectiveOperation& operation) {
    MemoryCall call{.plan = operation.plan->memory(),
                    .number = operation.number,
                    .fingerprint = operation.terms.fingerprint,
                    .memory = &operation.memory,
                    .reducer = operation.reducer ? &*operation.reducer : nullptr};
    memory.shows = !call.plan->in_slot() && show_all(memory, operation);
    if (memory.shows) call.shown = &memory.shown;
    memory.executor.begin(call);
    memory.begun = true;
}

/// Finds what the others can read in place in an operation that runs in rounds.
bool CollectiveRunner::show_all(MemoryCollectives& memory, const CollectiveOperation& operation) {
    for (const Pair* const pair : memory.context->pairs) {
        if (pair != nullptr) pair->peer->buffers.drop_released();
    }
    if (buffers_.empty()) return false;
    memory.shown = {};
    bool any = false;
    for (std::uint32_t stage = 0; stage < operation.plan->memory()->stages(); ++stage) {
        memory.shown.at(stage) = show(*memory.context, operation, stage);
        any = any || memory.shown.at(stage).name != 0;
    }
    return any;
}

/// Where the others can read what this rank would put in a stage: nowhere if it is not in a shared
/// buffer, or a reader cannot get that buffer.
ShownVector CollectiveRunner::show(const Context& context, const CollectiveOperation& operation,
                                   std::uint32_t stage) {
    const MemoryPlan& plan = *operation.plan->memory();
    const auto& slice = plan.shown(stage);
    if (!slice) return {};
    const std::uint64_t bytes = slice->count * plan.element_bytes();
    const port::Bytes vector = operation.memory.at(*slice, 0, bytes, plan.element_bytes());
    if (vector.size() != bytes) return {};  // it is in several pieces
    const OwnBuffers::Entry* const buffer = buffers_.find(vector);
    if (buffer == nullptr) return {};
    const ShownVector shown{
        .name = buffer->name,
        .offset = static_cast<std::uint64_t>(vector.data() - buffer->memory->bytes().data())};
    if (!plan.aligned(shown.offset)) return {};
    if (plan.readers() == MemoryPlan::Readers::one) {
        return share(*buffer, *context.pairs[plan.reader()]->peer) ? shown : ShownVector{};
    }
    const bool all = std::ranges::all_of(context.pairs, [&](const Pair* pair) {
        return pair == nullptr || share(*buffer, *pair->peer);
    });
    return all ? shown : ShownVector{};
}

bool CollectiveRunner::share(const OwnBuffers::Entry& buffer, Peer& peer) {
    if (peer.buffers.knows(buffer.name)) return true;
    if (!peer.buffers.may_share() || !peer.transfers.share(buffer.name, buffer.memory)) {
        return false;
    }
    peer.buffers.shared(buffer.name);
    return true;
}

/// The operation that the executor runs has succeeded.
void CollectiveRunner::end_call(MemoryCollectives& memory) {
    memory.begun = false;
    if (!std::exchange(memory.shows, false)) return;
    for (const Pair* const pair : memory.context->pairs) {
        if (pair != nullptr) pair->peer->buffers.prove();
    }
}

std::shared_ptr<const port::PeerMemory> MemoryCollectives::find(std::uint32_t rank,
                                                                std::uint64_t name) const {
    return context->pairs[rank]->peer->buffers.find(name);
}

/// Ends an operation that begins if a member is gone that has not published its part in it.
void CollectiveRunner::end_if_absent(MemoryCollectives& memory, CollectiveOperation& operation) {
    for (const std::uint32_t rank : operation.plan->memory()->partners()) {
        const Pair& pair = *memory.context->pairs[rank];
        if (!pair.peer->lost || memory.executor.has_published(rank)) continue;
        return end_from(*memory.context, operation.number,
                        pair.peer->lost->within({.rank = public_rank(pair.rank)}));
    }
}

/// Ends an operation that waits for a member that is gone.
bool CollectiveRunner::end_if_lost(MemoryCollectives& memory, CollectiveOperation& operation) {
    for (const std::uint32_t rank : operation.plan->memory()->partners()) {
        const Pair& pair = *memory.context->pairs[rank];
        if (!pair.peer->lost || !memory.executor.needs(rank)) continue;
        end_from(*memory.context, operation.number,
                 pair.peer->lost->within({.rank = public_rank(pair.rank)}));
        return true;
    }
    return false;
}

/// Takes an operation that failed out of the queue.
void CollectiveRunner::leave_memory(CollectiveOperation& operation) {
    MemoryCollectives& memory = *operation.context->collectives.memory;
    const bool runs = memory.begun && memory.queue.first() == &operation;
    memory.queue.erase(operation);
    operation.in_memory_queue = false;
    if (runs) {
        memory.begun = false;
        memory.executor.give_up();
        if (memory.executor.take_published()) nudge_all(memory);
    }
    if (memory.queue.empty() && !memory.pumping && std::exchange(memory.polled, false)) {
        polled_.erase(memory);
    }
}

/// All members, not only the partners of the current operation: another one may wait for a sign
/// that this rank has finished with an earlier operation.
void CollectiveRunner::nudge_all(const MemoryCollectives& memory) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // one for all, see port::Link::nudge()
    for (const Pair* const pair : memory.context->pairs) {
        if (pair != nullptr) services_->nudge(*pair->peer);
    }
}

/// An operation that is not the first of the queue waits for those that the first one waits for.
bool CollectiveRunner::awaits_in_memory(const CollectiveOperation& operation,
                                        std::uint32_t rank) noexcept {
    if (!operation.in_memory_queue) return false;
    const MemoryCollectives& memory = *operation.context->collectives.memory;
    return memory.begun && memory.executor.awaits(rank);
}

bool CollectiveRunner::needs_in_memory(const CollectiveOperation& operation,
                                       std::uint32_t rank) noexcept {
    if (!operation.in_memory_queue) return false;
    const MemoryCollectives& memory = *operation.context->collectives.memory;
    return memory.begun && memory.executor.needs(rank);
}

}  // namespace nexar::engine
