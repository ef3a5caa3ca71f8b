#pragma once

#include <concepts>
#include <cstdint>
#include <nexar/communicator.hpp>
#include <nexar/error.hpp>
#include <optional>

namespace nexar {

struct ResilientOptions {
    /// resilient() gives up after this many failed attempts at one step in which no member was
    /// lost.
    int attempts = 3;
};

/// The state of a computation that survives failures: save() keeps a copy, and restore() returns to
/// the last one that was kept.
template <class S>
concept RestorableState = requires(S& state) {
    state.save();
    state.restore();
};

/// Calls `step(communicator)` until it returns false on any rank, and survives failures of other
/// ranks. Every step ends with Communicator::agree(), and counts only if all surviving ranks have
/// completed it: then `state.save()` follows. Otherwise all ranks call `state.restore()` and repeat
/// the step on a communicator of the survivors. state.save() is also called before the first step.
///
/// Returns the communicator of the last step. Throws the error of a step that fails repeatedly
/// although no member was lost, every error of a step whose remedy is not Remedy::recover, and the
/// errors of agree() and shrink(), such as Errc::evicted or Errc::minority_partition.
///
///     world = nexar::resilient(world, model, [&](nexar::Communicator& ranks) {
///         ranks.all_reduce(model.gradients, nexar::average).wait();
///         return model.advance();
///     });
template <RestorableState State, std::invocable<Communicator&> Step>
Communicator resilient(Communicator communicator, State& state, Step step,
                       const ResilientOptions& options = {}) {
    constexpr std::uint64_t kCompleted = 1;
    constexpr std::uint64_t kMore = 2;
    state.save();
    for (int failed = 0;;) {
        std::uint64_t flags = 0;
        std::optional<Error> failure;
        try {
            flags = kCompleted | (step(communicator) ? kMore : 0);
        } catch (const Error& error) {
            if (remedy(error.code()) != Remedy::recover) throw;
            failure = error;
            communicator.revoke();  // others may wait for this rank inside the step
        }
        const Agreed agreed = communicator.agree(flags).wait();
        const bool counts = (agreed.flags & kCompleted) != 0;
        failed = counts || !agreed.lost.empty() ? 0 : failed + 1;
        if (failed >= options.attempts) {
            throw failure.value_or(
                Error(Errc::revoked, "the step failed repeatedly on another rank"));
        }
        // A communicator that was revoked or has lost a member cannot be used again.
        if (!counts || !agreed.lost.empty()) communicator = communicator.shrink();
        if (!counts) {
            state.restore();
            continue;
        }
        state.save();
        if ((agreed.flags & kMore) == 0) return communicator;
    }
}

}  // namespace nexar
