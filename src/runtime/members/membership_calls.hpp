#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/agreement.hpp"
#include "runtime/members/succession.hpp"
#include "runtime/node_body.hpp"
#include "runtime/task.hpp"

namespace nexar::detail {

using Body = std::shared_ptr<CommunicatorBody>;

/// The arguments of an agreement among the ranks of a communicator, see engine::AgreeOperation.
struct AgreementTerms {
    wire::AgreementKind what = wire::AgreementKind::agree;
    std::uint64_t flags = 0;
    std::vector<Rank> excluded{};
    std::uint64_t fingerprint = 0;
    wire::AgreementWords words{};
    engine::WorldPlan plan{};
};

using runtime::Outcome;

TaskOwner start_agreement(const Body& body, const AgreementTerms& terms);
/// Waits for the agreement. Throws its error.
Outcome agree_on(const Body& body, const AgreementTerms& terms, const char* operation);

/// The same for shrink(): repeats the call if a loss has ended other calls on some ranks only.
Outcome agree_to_shrink(const Body& body);

struct Made {
    Body body{};
    bool excluded = false;      // the others made it without this node, which is alone in its own
    std::vector<int> joined{};  // ranks in it
    std::size_t senders = 0;    // the first ranks in it, which send the application's state
};

/// Makes the communicator that the ranks of `body` agreed on, see Outcome::plan; members that join
/// learn of it. If `body` is the node's newest world, the new one takes its place.
Made rebuilt(const Body& body, const Outcome& agreed);

/// Sends the application's state to the members that join, if this rank is one of the senders.
void welcome_joiners(const Made& made);

}  // namespace nexar::detail
