#pragma once

#include <cstdint>
#include <vector>
#include "base/types.hpp"

#include "base/time.hpp"
#include "engine/operation.hpp"
#include "wire/membership_messages.hpp"

namespace nexar::engine {

/// The communicator that the caller makes when an agreement has ended. The engine only remembers
/// it, see AgreeOperation::resumed.
struct WorldPlan {
    std::vector<Rank> excluded{};  // ranks that are not in it, besides those that are lost
    std::vector<Rank> added{};     // members of the cluster that join it
    bool grows = false;            // all members of the view join it
    bool sends_state = false;      // to those that join

    friend bool operator==(const WorldPlan&, const WorldPlan&) = default;
};

/// One rank's part in an agreement of the members of a communicator, see Agreements. All members
/// that are in the view must call it in the same order, except those that `excluded` names. It
/// works in a communicator that was revoked or has lost members.
class AgreeOperation final : public Operation {
public:
    AgreeOperation() noexcept : Operation(Kind::agreement) {}

    // Set before start().
    wire::AgreementKind what = wire::AgreementKind::agree;
    std::uint64_t flags = 0;
    std::vector<Rank> excluded{};   // who takes no part; strictly ascending, without this rank
    std::uint64_t fingerprint = 0;  // of the arguments that must be equal on all ranks
    Epoch newest{};                 // the newest view that the caller knows
    wire::AgreementWords words{};
    WorldPlan plan{};
    Duration timeout{};  // from start(); the call counts as made even if it times out

    // Valid when it has ended without an error; equal on all ranks.
    std::uint64_t agreed_flags = 0;  // set by all ranks that took part
    std::vector<Rank> lost{};  // ranks of the communicator that were not in the view; ascending
    Epoch epoch{};             // at least the `newest` of every rank that took part
    /// For ContextOrigin::creation: no rank has made a communicator with this number. The engine
    /// sets Context::creations to it; the caller that makes one must increment that, as always.
    std::uint64_t creation = 0;
    wire::AgreementWords agreed_words{};  // the largest of each
    /// This shrink has completed an earlier call of this rank instead, one that ended with an error
    /// before the ranks had decided. They may have decided since, so that the others have a
    /// communicator with this rank already. `plan` is that of the earlier call.
    bool resumed = false;

    // Used by the engine only.
    std::uint64_t number = 0;  // of the agreement in its communicator, from 0
    ContextId context_id{};
    std::uint64_t creations = 0;  // Context::creations
    TimePoint started{};
    TimePoint deadline{};
    TimePoint ask_at{};  // when to ask the coordinator whom it waits for
};

}  // namespace nexar::engine
