#include "membership/learner.hpp"

#include <algorithm>

#include "membership/planted.hpp"

namespace nexar::membership {
namespace {

/// Bounds on what peers make this node remember: a peer has one vote, but a slow voter may need the
/// view of an older ballot.
constexpr std::size_t kMostValues = 8;
constexpr std::size_t kMostVouchesOfANode = 4;
constexpr std::size_t kMostVouches = 256;

}  // namespace

void Learner::adopt(const View& view) {
    view_ = view;
    voters_ = voters_of(view);
    values_.clear();
    votes_.clear();
    carried_.clear();
    std::erase_if(vouches_, [&](const Vouch& one) { return one.view.epoch <= view.epoch; });
}

bool Learner::is_voter(const NodeId& node) const {
    return std::ranges::find(voters_, node, &Voter::node) != voters_.end();
}

void Learner::proposed(const wire::BallotNumber& number, const View& view) {
    const auto at = std::ranges::find(values_, number, &Value::number);
    if (at != values_.end()) {
        if (planted(Bug::ballot_number_reused)) *at = {number, digest(view), view};
        return;
    }
    if (values_.size() == kMostValues) {
        const auto lowest = std::ranges::min_element(values_, {}, &Value::number);
        if (number < lowest->number) return;
        values_.erase(lowest);
    }
    values_.push_back({.number = number, .digest = digest(view), .view = view});
}

void Learner::voted(const NodeId& voter, const wire::BallotNumber& number,
                    const wire::BallotNumber& digest) {
    if (!is_voter(voter)) return;
    const auto at = std::ranges::find(votes_, voter, &Vote::voter);
    if (at == votes_.end()) {
        votes_.push_back({.voter = voter, .number = number, .digest = digest});
    } else if (at->number < number) {
        at->number = number;
        at->digest = digest;
    }
}

void Learner::carried(const NodeId& voter, const View& view) {
    if (!is_voter(voter)) return;
    const auto at = std::ranges::find(carried_, voter, &Carried::voter);
    if (at == carried_.end()) {
        carried_.push_back({.voter = voter, .digest = digest(view)});
    } else {
        at->digest = digest(view);
    }
}

void Learner::vouched(const NodeId& node, Source source, const View& view) {
    std::size_t own = 0;
    for (Vouch& one : vouches_) {
        if (one.node != node) continue;
        if (one.view.epoch == view.epoch) {
            one.view = view;
            one.source = source;
            return;
        }
        ++own;
    }
    if (own >= kMostVouchesOfANode) {
        // The newest are the most useful ones.
        const auto oldest = std::ranges::min_element(vouches_, {}, [&](const Vouch& one) {
            return one.node == node ? one.view.epoch : Epoch(~std::uint64_t{0});
        });
        vouches_.erase(oldest);
    }
    if (vouches_.size() >= kMostVouches) vouches_.erase(vouches_.begin());
    vouches_.push_back({.node = node, .source = source, .view = view});
}

bool Learner::enough_votes(const Value& value) const {
    const auto says = [&](const Vote& vote) {
        if (planted(Bug::stale_vote_counted)) return true;
        return vote.number == value.number && vote.digest == value.digest;
    };
    std::size_t votes = 0;
    for (const Voter& voter : voters_) {
        const auto vote = std::ranges::find(votes_, voter.node, &Vote::voter);
        const View* const decided = vouch_of(voter.node);
        const bool counts =
            (vote != votes_.end() && says(*vote)) || (decided != nullptr && *decided == value.view);
        if (counts) ++votes;
    }
    std::size_t needed = voters_.size() / 2 + 1;
    if (planted(Bug::small_majority) && needed > 1) --needed;
    if (planted(Bug::single_accepted_trusted)) needed = 1;
    return votes >= needed;
}

bool Learner::enough_vouches(const View& view, std::size_t informants) const {
    std::size_t nodes = 0;
    std::size_t strangers = 0;
    for (const Vouch& one : vouches_) {
        if (one.view != view) continue;
        if (one.source == Source::seed) return true;
        ++(one.source == Source::stranger ? strangers : nodes);
    }
    if (informants == 0 && strangers > 0) {
        // Members that this node knows cannot confirm it: none of them can be reached.
        const auto fresh =
            static_cast<std::size_t>(std::ranges::count_if(view.members, [&](const Member& member) {
                const Member* const old = view_.find(member.node);
                return old == nullptr || old->incarnation != member.incarnation;
            }));
        return nodes + strangers >= std::clamp<std::size_t>(fresh, 1, 2);
    }
    return nodes >= std::clamp<std::size_t>(informants, 1, 2);
}

std::optional<View> Learner::decision(std::size_t informants) const {
    for (const Value& value : values_) {
        if (enough_votes(value)) return value.view;
    }
    const Vouch* best = nullptr;
    for (const Vouch& one : vouches_) {
        if (best != nullptr && best->view.epoch <= one.view.epoch) continue;
        if (enough_vouches(one.view, informants)) best = &one;
    }
    if (best == nullptr) return std::nullopt;
    return best->view;
}

const View* Learner::vouch_of(const NodeId& voter) const {
    for (const Vouch& one : vouches_) {
        if (one.node == voter && one.source != Source::stranger &&
            one.view.epoch.value() == view_.epoch.value() + 1)
            return &one.view;
    }
    return nullptr;
}

std::size_t Learner::known_votes(const View& view) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        voters_, [&](const Voter& voter) { return voted_for(voter.node, view); }));
}

bool Learner::voted_for(const NodeId& voter, const View& view) const {
    const wire::BallotNumber wanted = digest(view);
    const auto vote = std::ranges::find(votes_, voter, &Vote::voter);
    if (vote != votes_.end() && vote->digest == wanted) return true;
    const auto carried = std::ranges::find(carried_, voter, &Carried::voter);
    if (carried != carried_.end() && carried->digest == wanted) return true;
    const View* const decided = vouch_of(voter);
    return decided != nullptr && *decided == view;
}

}  // namespace nexar::membership
