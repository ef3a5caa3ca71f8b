// The short start of an operation in shared memory: first what the other ranks wait for.

#include "engine/collective_runner.hpp"
#include "engine/context.hpp"

namespace nexar::engine {

bool CollectiveRunner::publish(Context& context, CollectiveOperation& operation) {
    ContextCollectives& here = context.collectives;
    MemoryCollectives* const memory = here.memory.get();
    if (memory == nullptr || here.some_lost || memory->begun || !memory->queue.empty())
        return false;
    if (!here.early.empty() || here.heard_of(here.next) != nullptr) return false;
    operation.begins_late = false;  // as an earlier call with the same object may have done
    if (!plan(context, operation) || operation.plan->memory() == nullptr) return false;
    if (!lay_out(operation)) return false;
    take_number(context, operation);
    reset(operation);
    operation.terms.profile = here.profile_hash;
    operation.terms.fingerprint = fingerprint_of(operation);
    begin_call(*memory, operation);
    memory->executor.advance();
    if (memory->executor.take_published()) nudge_all(*memory);
    return true;
}

void CollectiveRunner::enter_published(TimePoint now, CollectiveOperation& operation) {
    Context& context = *operation.context;
    MemoryCollectives& memory = *context.collectives.memory;
    now_ = now;
    operation.started = now;
    remember(context, operation);
    const MemoryExecutor::State state = memory.executor.advance();
    if (memory.executor.take_published()) nudge_all(memory);
    if (state != MemoryExecutor::State::done) {
        list(operation);
        return enter_memory(context, operation);
    }
    end_call(memory);
    operation.unfinished = 0;
    conclude(operation);
}

}  // namespace nexar::engine
