// How collectives end because the members of the cluster change.

#include <vector>

#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

void CollectiveRunner::stop(Context& context, const Error& error, bool tell) {
    ContextCollectives& here = context.collectives;
    end_from(context, here.first, error, tell);
    while (!here.early.empty()) drop_early(context, here.early.begin()->first);
    // A member that is gone may have left its segment half written, so it is never used again.
    const MemoryCollectives* const memory = here.memory.get();
    if (memory != nullptr && memory->queue.empty() && !memory->begun && !memory->pumping) {
        here.memory.reset();
    }
}

void CollectiveRunner::halt(Context& context, const Error& error) {
    for (CollectiveOperation* const operation : all_running()) {
        if (operation->context == &context && operation->active) fail(*operation, error);
    }
}

void CollectiveRunner::strand(Peer& peer) {
    for (const auto& [id, pair] : peer.pairs) {
        if (!pair->collectives) continue;
        std::vector<CollectiveIn*> unneeded;
        for (const auto& [sequence, in] : pair->collectives->streams) {
            const bool needed = in->early || (in->operation != nullptr && !in->operation->failure);
            if (in->stream == nullptr && !needed) unneeded.push_back(in.get());
        }
        for (CollectiveIn* const in : unneeded) lose(*in);
    }
}

}  // namespace nexar::engine
