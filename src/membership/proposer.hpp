#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "membership/proposal.hpp"
#include "wire/messages.hpp"

namespace nexar::membership {

/// The ballot of this node, if it holds one.
class Proposer {
public:
    enum class Phase : std::uint8_t { idle, preparing, accepting };
    /// What a proposer may do with the answers that it has.
    enum class Choice : std::uint8_t {
        wait,    // for more answers
        free,    // nothing can have been decided: propose anything
        forced,  // a view may have been decided: propose that one
    };

    Phase phase() const { return phase_; }
    bool idle() const { return phase_ == Phase::idle; }
    const wire::BallotNumber& number() const { return number_; }
    const View& value() const { return value_; }
    /// The ballot from which the value was carried over; all zero: the value is new.
    const wire::BallotNumber& carried() const { return carried_; }

    /// A ballot with this round exists; the next one of this node will be higher.
    void saw(const wire::BallotNumber& number);
    void forget_rounds() { highest_round_ = 0; }

    void begin(TimePoint now, const NodeId& self, std::size_t voters);
    /// A voter joined the ballot; `view` is its last vote, if it has voted.
    void promised(TimePoint now, const NodeId& voter, const wire::BallotNumber& last,
                  const View* view);
    /// A voter knows that this view was decided.
    void decided(TimePoint now, const NodeId& voter, const View& view);
    /// A voter does not agree with the value.
    void refused(const NodeId& voter);

    bool answered(const NodeId& voter) const;
    bool has_majority() const { return majority_at_.has_value(); }
    TimePoint majority_at() const { return majority_at_.value_or(TimePoint::max()); }
    /// `complete`: no more answers are expected.
    Choice choice(bool complete) const;
    const View& forced_value() const;

    void propose(const View& value, bool forced);
    /// True if those that refused leave no majority.
    bool lost() const;
    void stop() { phase_ = Phase::idle; }

    TimePoint started{};  // the ballot
    TimePoint resend{};

private:
    struct Answer {
        NodeId voter{};
        wire::BallotNumber last{};
        std::optional<View> view{};
        bool decided = false;
    };
    void answer(TimePoint now, Answer answer);
    const Answer* best() const;
    std::size_t majority() const { return voters_ / 2 + 1; }

    Phase phase_ = Phase::idle;
    std::uint64_t highest_round_ = 0;
    wire::BallotNumber number_{};
    std::size_t voters_ = 0;
    std::vector<Answer> answers_{};
    std::vector<NodeId> refusals_{};
    std::optional<TimePoint> majority_at_{};
    View value_{};
    wire::BallotNumber carried_{};

public:
    // When to begin the next ballot.
    std::optional<TimePoint> start_at{};
    TimePoint not_before{};  // another node holds a ballot, or the last one failed
    unsigned failures = 0;
};

}  // namespace nexar::membership
