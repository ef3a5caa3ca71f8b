#include <algorithm>
#include <utility>

#include "membership/planted.hpp"
#include "membership/state.hpp"
#include "wire/view.hpp"

/// The voter: joins ballots, and votes for views that it agrees with.
namespace nexar::membership {

bool Membership::State::votes() const {
    const std::vector<Voter> voters = voters_of(view());
    return std::ranges::any_of(voters, [&](const Voter& voter) {
        return voter.node == self_.node &&
               (voter.incarnation == self_.incarnation || planted(Bug::restored_witness_votes));
    });
}

void Membership::State::refuse(const NodeId& to, const wire::BallotNumber& number,
                               const wire::BallotNumber& joined) {
    send(to, wire::Ballot{.step = wire::BallotStep::refused,
                          .epoch = Epoch(view().epoch.value() + 1),
                          .number = number,
                          .other = joined});
}

void Membership::State::on_prepare(const Identity& from, const wire::Ballot& ballot) {
    if (from.node != self_.node) hold_off();
    if (!votes()) return;
    if (!acceptor_.promise(ballot.number)) {
        refuse(from.node, ballot.number, acceptor_.vote().promised);
        return;
    }
    if (pending_ && pending_->number < ballot.number) pending_.reset();
    const Vote& vote = acceptor_.vote();
    wire::Ballot answer{
        .step = wire::BallotStep::promise, .epoch = ballot.epoch, .number = ballot.number};
    if (vote.accepted_view && !planted(Bug::vote_not_reported)) {
        answer.other = vote.accepted;
        answer.view.push_back(wire::in_wire(*vote.accepted_view));
        // The others see for themselves what the proposer must now propose.
        for (const Voter& voter : voters_of(view())) {
            if (voter.node != from.node && voter.node != self_.node) send(voter.node, answer);
        }
        learner_.carried(self_.node, *vote.accepted_view);
    }
    send(from.node, std::move(answer));
}

void Membership::State::on_accept(const Identity& from, bool from_seed,
                                  const wire::Ballot& ballot) {
    if (from.node != self_.node) hold_off();
    View next = wire::from_wire(ballot.view.front());
    std::optional<Difference> difference = compare(view(), next);
    if (!difference) return;
    learner_.proposed(ballot.number, next);
    if (!votes()) return;
    if (!acceptor_.may_vote(ballot.number)) {
        refuse(from.node, ballot.number, acceptor_.vote().promised);
        return;
    }
    if (pending_ && pending_->number > ballot.number) return;
    if (pending_ && pending_->number == ballot.number) return;
    pending_ = Pending{.from = from,
                       .from_seed = from_seed,
                       .number = ballot.number,
                       .carried = ballot.other != wire::BallotNumber{},
                       .view = std::move(next),
                       .difference = std::move(*difference),
                       .since = now_,
                       .until = now_ + timing_.whole * 4 / 5};
}

void Membership::State::decide_pending() {
    if (!pending_) return;
    if (!acceptor_.may_vote(pending_->number)) {
        pending_.reset();
        return;
    }
    Verdict verdict = judge(*pending_);
    if (verdict == Verdict::wait && now_ >= pending_->until) verdict = Verdict::refuse;
    if (verdict == Verdict::wait) return;
    const Pending pending = std::move(*pending_);
    pending_.reset();
    if (verdict == Verdict::agree) {
        vote_for(pending);
    } else {
        refuse(pending.from.node, pending.number, pending.number);
    }
}

void Membership::State::vote_for(const Pending& pending) {
    if (acceptor_.vote().accepted != pending.number) voted_at_ = now_;
    acceptor_.vote(pending.number, pending.view);
    const wire::Ballot accepted{.step = wire::BallotStep::accepted,
                                .epoch = Epoch(view().epoch.value() + 1),
                                .number = pending.number,
                                .other = digest(pending.view)};
    for (const Member& member : view().members) send(member.node, accepted);
    const std::optional<Witness>& witness = view().witness;
    if (witness) send(witness->seed, accepted);
    const bool told = view().find(pending.from.node) != nullptr ||
                      (witness && witness->seed == pending.from.node);
    if (!told) send(pending.from.node, accepted);
}

Membership::State::Verdict Membership::State::judge(const Pending& pending) {
    const Vote& vote = acceptor_.vote();
    if (vote.accepted_view == pending.view) return Verdict::agree;
    const Verdict own = opinion(pending);
    if (own == Verdict::agree || !pending.carried) return own;
    return may_be_chosen(pending) ? Verdict::agree : Verdict::wait;
}

/// True if the voters that are known to have voted for the view, and those that this node cannot
/// ask, may be a majority. Then the view wins over this node's opinion.
bool Membership::State::may_be_chosen(const Pending& pending) {
    const std::size_t known = learner_.known_votes(pending.view);
    if (known == 0) return false;
    const std::vector<Voter> voters = voters_of(view());
    std::size_t silent = 0;
    for (const Voter& voter : voters) {
        if (voter.node == self_.node || learner_.voted_for(voter.node, pending.view)) continue;
        const Detector::Opinion opinion = detector_.opinion(voter.node);
        if (opinion == Detector::Opinion::unreachable) ++silent;
        const bool heard = detector_.heard_at(voter.node) >= pending.since;
        if (opinion == Detector::Opinion::reachable && !heard) detector_.probe(now_, voter.node);
    }
    return known + silent >= voters.size() / 2 + 1;
}

Membership::State::Verdict Membership::State::opinion(const Pending& pending) {
    if (!pending.difference.joined.empty() && !pending.from_seed) return Verdict::refuse;
    for (const Member& member : pending.difference.joined) {
        if (was_member(member)) return Verdict::refuse;
    }
    Verdict worst = Verdict::agree;
    for (const Member& member : pending.difference.failed)
        worst = std::max(worst, opinion_on(member, pending, false));
    for (const Member& member : pending.difference.left)
        worst = std::max(worst, opinion_on(member, pending, true));
    return worst;
}

Membership::State::Verdict Membership::State::opinion_on(const Member& member,
                                                         const Pending& pending, bool left) {
    if (planted(Bug::eviction_although_heard)) return Verdict::agree;
    const bool replaced = std::ranges::any_of(pending.difference.joined, [&](const Member& one) {
        return one.node == member.node && one.incarnation > member.incarnation;
    });
    if (replaced) return Verdict::agree;
    if (member.node == self_.node) return leaving_ ? Verdict::agree : Verdict::refuse;
    if (left && member.node == pending.from.node) return Verdict::agree;
    switch (detector_.verdict(member.node, now_)) {
        case Detector::Opinion::unreachable:
            return Verdict::agree;
        case Detector::Opinion::probing:
            return Verdict::wait;
        case Detector::Opinion::reachable:
            break;
    }
    // The proposer lost it: look again before this node refuses.
    if (detector_.heard_at(member.node) >= pending.since) return Verdict::refuse;
    detector_.probe(now_, member.node);
    return Verdict::wait;
}

}  // namespace nexar::membership
