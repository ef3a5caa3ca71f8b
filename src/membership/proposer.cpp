#include "membership/proposer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "membership/planted.hpp"

namespace nexar::membership {

void Proposer::saw(const wire::BallotNumber& number) {
    highest_round_ = std::max(highest_round_, number.round);
}

void Proposer::begin(TimePoint now, const NodeId& self, std::size_t voters) {
    phase_ = Phase::preparing;
    if (!planted(Bug::ballot_number_reused) || highest_round_ == 0) ++highest_round_;
    number_ = {.round = highest_round_, .proposer = self.bytes()};
    voters_ = voters;
    answers_.clear();
    refusals_.clear();
    majority_at_.reset();
    carried_ = {};
    started = now;
}

void Proposer::answer(TimePoint now, Answer answer) {
    const auto at = std::ranges::find(answers_, answer.voter, &Answer::voter);
    if (at != answers_.end()) {
        if (answer.decided) *at = std::move(answer);
        return;
    }
    const bool own = answer.voter == NodeId(number_.proposer);
    if (planted(Bug::self_in_own_quorum_twice) && own) answers_.push_back(answer);
    answers_.push_back(std::move(answer));
    if (!majority_at_ && answers_.size() >= majority()) majority_at_ = now;
}

void Proposer::promised(TimePoint now, const NodeId& voter, const wire::BallotNumber& last,
                        const View* view) {
    if (phase_ != Phase::preparing) return;
    Answer one{.voter = voter, .last = last};
    if (view != nullptr) one.view = *view;
    answer(now, std::move(one));
}

void Proposer::decided(TimePoint now, const NodeId& voter, const View& view) {
    if (phase_ != Phase::preparing) return;
    answer(now, {.voter = voter, .view = view, .decided = true});
}

void Proposer::refused(const NodeId& voter) {
    if (std::ranges::find(refusals_, voter) == refusals_.end()) refusals_.push_back(voter);
}

bool Proposer::answered(const NodeId& voter) const {
    return std::ranges::find(answers_, voter, &Answer::voter) != answers_.end();
}

Proposer::Choice Proposer::choice(bool complete) const {
    if (planted(Bug::accept_without_promise)) return Choice::free;
    if (answers_.size() < majority()) return Choice::wait;
    if (best() != nullptr && best()->decided) return Choice::forced;
    // A decided view has the votes of a majority. Only the view with the highest ballot can be it,
    // and a voter that did not answer may have voted for it.
    const Answer* const highest = best();
    if (highest == nullptr) return Choice::free;
    const auto voted = static_cast<std::size_t>(std::ranges::count_if(
        answers_, [&](const Answer& one) { return one.view == highest->view; }));
    const std::size_t silent = voters_ - std::min(voters_, answers_.size());
    if (voted + silent < majority()) return Choice::free;
    if (planted(Bug::accepted_value_ignored)) return Choice::free;
    return complete ? Choice::forced : Choice::wait;
}

const Proposer::Answer* Proposer::best() const {
    const Answer* best = nullptr;
    for (const Answer& one : answers_) {
        if (!one.view) continue;
        if (one.decided) return &one;
        if (best == nullptr || best->last < one.last) best = &one;
    }
    return best;
}

const View& Proposer::forced_value() const {
    const Answer* const one = best();
    NEXAR_ASSERT(one != nullptr && one->view.has_value());
    return *one->view;
}

void Proposer::propose(const View& value, bool forced) {
    phase_ = Phase::accepting;
    value_ = value;
    carried_ = forced ? best()->last : wire::BallotNumber{};
    if (forced && best()->decided) carried_ = number_;
}

bool Proposer::lost() const {
    return voters_ - std::min(voters_, refusals_.size()) < majority();
}

}  // namespace nexar::membership
