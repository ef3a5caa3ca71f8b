#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/agreement.hpp"
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
};

/// What the ranks agreed on.
struct Outcome {
    std::vector<Rank> lost{};
    Epoch epoch{};
    std::uint64_t creation = 0;
    wire::AgreementWords words{};
};

TaskOwner start_agreement(const Body& body, const AgreementTerms& terms);
/// Waits for the agreement. Throws its error.
Outcome agree_on(const Body& body, const AgreementTerms& terms, const char* operation);

/// The same for shrink(): repeats the call if a loss has ended other calls on some ranks only.
Outcome agree_to_shrink(const Body& body);

struct Made {
    Body body{};
    bool excluded = false;      // this node is not in it; `body` is a communicator of this node
    std::vector<int> joined{};  // ranks in it
};

/// Members that a new communicator takes in.
struct Added {
    std::vector<Rank> members{};
    std::uint32_t senders = 0;  // how many ranks send the application's state to them, at most
};

/// How many members send the state, if `kept` of a communicator's ranks do not join just now.
std::uint32_t senders_among(std::size_t kept, std::uint32_t wanted);

/// Makes the communicator that the ranks of `body` agreed on: those that are neither lost nor
/// excluded, then the added members, which learn of it. If `body` is the node's newest world,
/// the new one takes its place.
Made rebuilt(const Body& body, const Outcome& agreed, const std::vector<Rank>& excluded,
             const Added& added);

}  // namespace nexar::detail
