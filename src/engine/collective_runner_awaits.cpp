// Which ranks an operation waits for.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

/// The ranks that the operation waits for, each with the bytes whose header has not arrived.
std::map<std::uint32_t, std::uint64_t> CollectiveRunner::awaited(
    const CollectiveOperation& operation) {
    std::map<std::uint32_t, std::uint64_t> ranks;
    for (std::uint32_t rank = 0; rank < operation.context->pairs.size(); ++rank) {
        if (awaits_in_memory(operation, rank)) ranks[rank] = 0;
    }
    for (std::uint32_t i = 0; i < operation.plan->size(); ++i) {
        const schedule::Step& step = operation.plan->step(i);
        const StepState& state = operation.steps[i];
        if (!schedule::is_message(step.kind) || state.finished) continue;
        std::uint64_t& bytes = ranks[step.peer];
        if (schedule::receives(step.kind) && !state.arrived) {
            bytes += operation.plan->ready(i).bytes;
        }
    }
    return ranks;
}

std::string CollectiveRunner::late_ranks(const CollectiveOperation& operation) {
    std::vector<std::uint32_t> named;
    for (const auto& [rank, bytes] : awaited(operation)) named.push_back(rank);
    // This process was stopped, for instance, and has not yet handled what arrived meanwhile.
    if (named.empty()) return "this rank itself";
    const bool more = named.size() > kMostNamed;
    if (more) named.resize(kMostNamed);
    return fmt::format("{} {}{}", named.size() == 1 ? "rank" : "ranks", fmt::join(named, ", "),
                       more ? ", ..." : "");
}

/// True when the operation still needs a message from that peer or to it.
bool CollectiveRunner::needs(const CollectiveOperation& operation,
                             const Peer& peer) const noexcept {
    if (operation.plan == nullptr) return false;
    for (const Pair* const pair : operation.context->pairs) {
        if (pair == nullptr || pair->peer != &peer) continue;
        if (needs_in_memory(operation, pair->rank.value())) return true;
    }
    for (std::uint32_t i = 0; i < operation.plan->size(); ++i) {
        const schedule::Step& step = operation.plan->step(i);
        const StepState& state = operation.steps[i];
        if (!schedule::is_message(step.kind) || state.finished || state.arrived) continue;
        if (operation.context->pairs[step.peer]->peer == &peer) return true;
    }
    return false;
}

}  // namespace nexar::engine
