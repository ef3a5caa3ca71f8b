#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/identity.hpp"
#include "base/view.hpp"
#include "wire/messages.hpp"

/// Views as values: what may follow a view, and who votes on it.
namespace nexar::membership {

struct Voter {
    NodeId node{};
    Incarnation incarnation{};

    friend bool operator==(const Voter&, const Voter&) noexcept = default;
};

/// The voters on the view after `view`: its members, and its witness if it votes.
std::vector<Voter> voters_of(const View& view);

/// What the next view changes.
struct Changes {
    std::vector<NodeId> failed{};
    std::vector<NodeId> left{};
    std::vector<Member> joiners{};  // their ranks are set by successor()
    std::optional<Witness> witness{};

    bool empty() const noexcept {
        return failed.empty() && left.empty() && joiners.empty() && !witness;
    }
};

/// The view after `base` with these changes.
View successor(const View& base, const Changes& changes);

/// How a view differs from the one before.
struct Difference {
    std::vector<Member> joined{};
    std::vector<Member> failed{};
    std::vector<Member> left{};
};

/// Compares a view with the one before, or returns nullopt if `next` cannot follow `base`: a view
/// grants only the next ranks, records the tokens of its joiners, and changes no member.
std::optional<Difference> compare(const View& base, const View& next);

/// Identifies a view in an `accepted` message, so that a proposer that sends different views in one
/// ballot deceives nobody.
wire::BallotNumber digest(const View& view);

}  // namespace nexar::membership
