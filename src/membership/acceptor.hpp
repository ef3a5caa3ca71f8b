#pragma once

#include <utility>

#include "base/view.hpp"
#include "membership/membership.hpp"
#include "wire/messages.hpp"

namespace nexar::membership {

/// A voter's promises and votes on the view after the one that it knows.
class Acceptor {
public:
    explicit Acceptor(const Vote& known) : vote_(known) {}

    const Vote& vote() const { return vote_; }
    bool has_voted() const { return vote_.accepted_view.has_value(); }

    /// Joins a ballot; false if this voter has joined a higher one.
    bool promise(const wire::BallotNumber& number);
    /// False if this voter has joined a higher ballot.
    bool may_vote(const wire::BallotNumber& number) const;
    /// Votes; requires may_vote().
    void vote(const wire::BallotNumber& number, const View& view);
    /// The view was decided; promises and votes now concern the one after it.
    void advance(const View& view);

    /// True from a change until kept().
    bool unkept() const { return unkept_; }
    void kept() { unkept_ = false; }

private:
    Vote vote_;
    bool unkept_ = false;
};

}  // namespace nexar::membership
