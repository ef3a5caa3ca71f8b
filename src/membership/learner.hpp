#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/identity.hpp"
#include "base/view.hpp"
#include "membership/proposal.hpp"
#include "wire/messages.hpp"

namespace nexar::membership {

/// Finds out which view the voters decided on: from their votes, or from nodes that know it.
class Learner {
public:
    /// Forgets everything about views up to `view`.
    void adopt(const View& view);

    /// The view of a ballot for the next epoch, from its proposer.
    void proposed(const wire::BallotNumber& number, const View& view);
    /// A vote for the view with this digest.
    void voted(const NodeId& voter, const wire::BallotNumber& number,
               const wire::BallotNumber& digest);
    /// The vote that a promise carried.
    void carried(const NodeId& voter, const View& view);
    enum class Source : std::uint8_t {
        node,  // of the view that this node knows
        seed,
        stranger,  // a member of the view that it shows
    };
    /// Somebody says that a later view was decided; see decision().
    void vouched(const NodeId& node, Source source, const View& view);

    /// The decided view with the lowest epoch, if a majority voted for it, a seed says so, or two
    /// nodes do. One node is enough if it is the only one that can answer: `informants` is the
    /// number of those that can. If there is none, two
    /// strangers are believed, or one if the view has only one new member.
    std::optional<View> decision(std::size_t informants) const;

    /// What a voter said was decided for the next epoch.
    const View* vouch_of(const NodeId& voter) const;
    /// The number of voters that are known to have voted for this view in some ballot.
    std::size_t known_votes(const View& view) const;
    bool voted_for(const NodeId& voter, const View& view) const;
    /// Only for planted bugs.
    void believe(const std::vector<Voter>& voters) { voters_ = voters; }
    bool has_vouches() const { return !vouches_.empty(); }

private:
    struct Value {
        wire::BallotNumber number{};
        wire::BallotNumber digest{};
        View view{};
    };
    struct Vote {
        NodeId voter{};
        wire::BallotNumber number{};
        wire::BallotNumber digest{};
    };
    struct Carried {
        NodeId voter{};
        wire::BallotNumber digest{};
    };
    struct Vouch {
        NodeId node{};
        Source source = Source::node;
        View view{};
    };

    bool is_voter(const NodeId& node) const;
    bool enough_votes(const Value& value) const;
    bool enough_vouches(const View& view, std::size_t informants) const;

    View view_{};
    std::vector<Voter> voters_{};
    std::vector<Value> values_{};
    std::vector<Vote> votes_{};  // the last one of each voter
    std::vector<Carried> carried_{};
    std::vector<Vouch> vouches_{};
};

}  // namespace nexar::membership
