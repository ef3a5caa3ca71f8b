#include <algorithm>
#include <utility>

#include "membership/planted.hpp"
#include "membership/state.hpp"
#include "wire/limits.hpp"
#include "wire/view.hpp"

/// The proposer: collects what the next view must change, and holds ballots.
namespace nexar::membership {
namespace {

constexpr unsigned kMostBackoff = 5;
constexpr unsigned kMostRefusals = 8;

std::uint32_t uses_of(const std::vector<SpentToken>& tokens, const std::array<std::byte, 16>& token,
                      std::uint32_t otherwise) {
    const auto at = std::ranges::find(tokens, token, &SpentToken::token);
    return at == tokens.end() ? otherwise : at->uses;
}

}  // namespace

void Membership::State::hint(TimePoint now, const NodeId& node, Hint hint) {
    begin(now);
    if (over_) return;
    detector_.hint(now_, node, hint);
    settle();
}

void Membership::State::propose_members(TimePoint now, std::vector<Member> joiners,
                                        const std::vector<SpentToken>& limits) {
    begin(now);
    if (over_ || !options_.seed) return;
    std::erase_if(joiners_, [&](const Joiner& old) {
        return std::ranges::find(joiners, old.member.node, &Member::node) == joiners.end();
    });
    joiners_.reserve(joiners_.size() + joiners.size());
    for (const Member& given : joiners) {
        // As the voters will see it.
        Member member = wire::from_wire(wire::in_wire(given));
        const auto old = std::ranges::find(joiners_, member.node,
                                           [](const Joiner& one) { return one.member.node; });
        const std::uint32_t uses = uses_of(limits, member.token, 1);
        if (old == joiners_.end()) {
            joiners_.push_back({.member = std::move(member), .token_uses = uses});
        } else if (old->member.incarnation <= member.incarnation) {
            const bool same = old->member.incarnation == member.incarnation;
            *old = {.member = std::move(member),
                    .token_uses = uses,
                    .refused = same ? old->refused : 0};
        }
    }
    drop_served_joiners();
    if (planted(Bug::join_by_seed_alone) && !joiners_.empty()) {
        const View old = view();
        const View next = successor(old, wanted());
        decide(next);
        tell_everyone(old, next);
    }
    settle();
}

bool Membership::State::served(const Joiner& joiner, const std::vector<Joiner>& before) const {
    const Member& member = joiner.member;
    const Member* const found = view().find(member.node);
    if (found != nullptr && found->incarnation >= member.incarnation) return true;
    if (was_member(member) || joiner.refused >= kMostRefusals) return true;
    if (member.token == std::array<std::byte, 16>{}) return false;
    const auto earlier = std::ranges::count_if(
        before, [&](const Joiner& one) { return one.member.token == member.token; });
    const std::uint32_t spent = uses_of(view().spent, member.token, 0);
    return spent + static_cast<std::uint32_t>(earlier) >= joiner.token_uses;
}

void Membership::State::drop_served_joiners() {
    std::vector<Joiner> rest;
    rest.reserve(joiners_.size());
    for (Joiner& one : joiners_) {
        if (!served(one, rest)) rest.push_back(std::move(one));
    }
    joiners_ = std::move(rest);
}

bool Membership::State::was_member(const Member& member) const {
    return std::ranges::any_of(removed_, [&](const Voter& one) {
        return one.node == member.node && one.incarnation >= member.incarnation;
    });
}

/// The voters do not say whom they refused. Proposes the joiners one at a time, in turn, so that
/// one cannot keep the others out.
void Membership::State::joiners_refused() {
    if (joiners_.empty()) return;
    if (one_by_one_ || joiners_.size() == 1) ++joiners_.front().refused;
    one_by_one_ = true;
    std::ranges::rotate(joiners_, joiners_.begin() + 1);
    drop_served_joiners();
}

void Membership::State::propose_witness(TimePoint now, const Witness& witness) {
    begin(now);
    if (over_) return;
    witness_.reset();
    if (view().witness != witness) witness_ = witness;
    settle();
}

void Membership::State::leave(TimePoint now) {
    begin(now);
    if (over_ || options_.seed) return;
    leaving_ = true;
    settle();
}

void Membership::State::turn(TimePoint now) {
    begin(now);
    if (over_) return;
    detector_.turn(now_);
    settle();
}

std::optional<TimePoint> Membership::State::next_deadline() const {
    if (over_) return std::nullopt;
    TimePoint next = detector_.deadline();
    if (pending_) next = std::min(next, pending_->until);
    if (proposer_.idle() && proposer_.start_at && may_propose())
        next = std::min(next, std::max(*proposer_.start_at, proposer_.not_before));
    const std::optional<TimePoint> loose = loose_end_at();
    if (proposer_.idle() && !proposer_.start_at && loose && may_propose())
        next = std::min(next, *loose);
    if (!proposer_.idle() && !planted(Bug::forgotten_timer)) {
        next = std::min(next, std::min(proposer_.resend, proposer_.started + timing_.whole));
        if (proposer_.phase() == Proposer::Phase::preparing && proposer_.has_majority())
            next = std::min(next, proposer_.majority_at() + timing_.heartbeat());
    }
    if (next == TimePoint::max()) return std::nullopt;
    return next;
}

bool Membership::State::may_propose() const {
    return options_.seed || !detector_.minority() || planted(Bug::minority_commits);
}

Changes Membership::State::wanted() const {
    Changes changes;
    if (options_.seed) {
        std::size_t room =
            wire::kMaxViewMembers - std::min(wire::kMaxViewMembers, view().members.size());
        room = std::min<std::size_t>(room, wire::kMaxRank - view().next_rank.value());
        const std::size_t count = std::min({room, joiners_.size(), one_by_one_ ? 1 : room});
        changes.joiners.reserve(count);
        for (std::size_t i = 0; i < count; ++i) changes.joiners.push_back(joiners_[i].member);
    } else {
        changes.failed = detector_.failed(now_);
        changes.left = detector_.departed();
        if (leaving_) changes.left.push_back(self_.node);
    }
    if (witness_ && witness_ != view().witness) changes.witness = witness_;
    return changes;
}

/// The reachable member with the lowest rank proposes first; the others help if it fails.
Duration Membership::State::own_delay() {
    if (options_.seed) return Duration::zero();
    if (leaving_ || witness_) {
        const auto most = static_cast<std::uint64_t>(timing_.late().count());
        return Duration(static_cast<Duration::rep>(random_.below(most)));
    }
    Duration delay{};
    for (const Member& member : view().members) {
        if (member.node == self_.node) break;
        if (detector_.opinion(member.node) != Detector::Opinion::unreachable)
            delay += timing_.step();
    }
    return delay;
}

/// After a ballot that failed; grows, so that two proposers do not stop each other for ever.
Duration Membership::State::pause() {
    proposer_.failures = std::min(proposer_.failures + 1, kMostBackoff);
    const auto most = static_cast<std::uint64_t>(timing_.step().count()) << proposer_.failures;
    return timing_.probe() + Duration(static_cast<Duration::rep>(random_.below(most)));
}

void Membership::State::hold_off() {
    if (!proposer_.idle()) return;
    // The others hold ballots all the time, but none of them helps.
    if (proposer_.start_at && now_ - *proposer_.start_at > timing_.whole * 2) return;
    proposer_.not_before = now_ + timing_.whole / 2 + own_delay();
}

/// When this node begins a ballot although it wants no change. A vote that is left behind by a
/// ballot that failed may force a later proposer to evict a member that has long recovered, so
/// another ballot replaces it, if necessary by a view without changes. And if a single node says
/// that a view was decided, but nobody can confirm it, a ballot shows whether it was.
std::optional<TimePoint> Membership::State::loose_end_at() const {
    if (acceptor_.has_voted()) return voted_at_ + timing_.whole * 2;
    if (learner_.has_vouches()) return vouched_at_ + timing_.whole;
    return std::nullopt;
}

void Membership::State::consider() {
    if (!proposer_.idle() || over_) return;
    const std::optional<TimePoint> loose = loose_end_at();
    if (!may_propose() || (wanted().empty() && (!loose || now_ < *loose))) {
        proposer_.start_at.reset();
        return;
    }
    if (!proposer_.start_at) proposer_.start_at = now_ + own_delay();
    if (now_ >= std::max(*proposer_.start_at, proposer_.not_before)) begin_ballot();
}

void Membership::State::begin_ballot() {
    proposer_.start_at.reset();
    std::vector<Voter> voters = voters_of(view());
    if (planted(Bug::minority_commits)) {
        std::erase_if(voters, [&](const Voter& voter) {
            return voter.node != self_.node &&
                   detector_.opinion(voter.node) == Detector::Opinion::unreachable;
        });
        learner_.believe(voters);
    }
    proposer_.begin(now_, self_.node, voters.size());
    resend();
}

void Membership::State::resend() {
    proposer_.resend = now_ + timing_.heartbeat();
    if (proposer_.phase() == Proposer::Phase::accepting) {
        send_accepts();
        return;
    }
    const wire::Ballot prepare{.step = wire::BallotStep::prepare,
                               .epoch = Epoch(view().epoch.value() + 1),
                               .number = proposer_.number()};
    for (const Voter& voter : voters_of(view())) {
        if (!proposer_.answered(voter.node)) send(voter.node, prepare);
    }
}

void Membership::State::send_accepts() {
    wire::Ballot accept{.step = wire::BallotStep::accept,
                        .epoch = proposer_.value().epoch,
                        .number = proposer_.number(),
                        .other = proposer_.carried()};
    accept.view.push_back(wire::in_wire(proposer_.value()));
    for (const Voter& voter : voters_of(view())) send(voter.node, accept);
    if (!votes()) learner_.proposed(proposer_.number(), proposer_.value());
}

void Membership::State::on_promise(const Identity& from, const wire::Ballot& ballot) {
    const std::vector<Voter> voters = voters_of(view());
    const Voter sender{.node = from.node, .incarnation = from.incarnation};
    const bool votes = std::ranges::find(voters, sender) != voters.end() ||
                       (planted(Bug::restored_witness_votes) &&
                        std::ranges::find(voters, from.node, &Voter::node) != voters.end());
    if (!votes) return;
    std::optional<View> last;
    if (!ballot.view.empty()) {
        last = wire::from_wire(ballot.view.front());
        if (!compare(view(), *last)) return;
        learner_.carried(from.node, *last);
    }
    if (proposer_.idle() || ballot.number != proposer_.number()) return;
    proposer_.promised(now_, from.node, ballot.other, last ? &*last : nullptr);
}

void Membership::State::on_refused(const Identity& from, const wire::Ballot& ballot) {
    if (proposer_.idle() || ballot.number != proposer_.number()) return;
    const Epoch next(view().epoch.value() + 1);
    if (ballot.epoch < next) {
        send_views(from.node, Epoch(ballot.epoch.value() - 1));
        return;
    }
    if (ballot.epoch > next) return;
    proposer_.saw(ballot.other);
    if (ballot.other > ballot.number) {
        proposer_.stop();
        proposer_.start_at = now_ + pause();
    } else if (proposer_.phase() == Proposer::Phase::accepting) {
        proposer_.refused(from.node);
    }
}

/// Takes the ballot as far as the answers allow.
void Membership::State::advance_ballot() {
    if (proposer_.idle()) return;
    if (proposer_.phase() == Proposer::Phase::preparing) {
        const std::vector<Voter> voters = voters_of(view());
        const bool all = std::ranges::all_of(voters, [&](const Voter& voter) {
            return proposer_.answered(voter.node) ||
                   detector_.opinion(voter.node) == Detector::Opinion::unreachable;
        });
        const bool late =
            proposer_.has_majority() && now_ >= proposer_.majority_at() + timing_.heartbeat();
        const Proposer::Choice choice = proposer_.choice(all || late);
        if (choice != Proposer::Choice::wait) {
            const bool forced = choice == Proposer::Choice::forced;
            const Changes changes = wanted();
            if (!forced && changes.empty() && !acceptor_.has_voted()) {
                // What this node wanted has become void. If that happens again and again, the
                // others must be able to propose in between.
                proposer_.stop();
                proposer_.not_before = now_ + pause();
                return;
            }
            proposer_.propose(forced ? proposer_.forced_value() : successor(view(), changes),
                              forced);
            proposer_.resend = now_ + timing_.heartbeat();
            send_accepts();
            return;
        }
    }
    const bool lost = proposer_.phase() == Proposer::Phase::accepting && proposer_.lost();
    const bool late = now_ >= proposer_.started + timing_.whole;
    if (lost || late) {
        if (planted(Bug::joiners_forgotten)) joiners_.clear();
        if (planted(Bug::forgotten_timer)) return;
        if (lost) joiners_refused();
        // The nodes of this view may be gone, but the witness may know of a later one.
        if (const auto& witness = view().witness; late && witness) {
            detector_.show_epoch(now_, witness->seed);
        }
        proposer_.stop();
        proposer_.start_at = now_ + pause() + (lost ? timing_.whole / 2 : Duration::zero());
        return;
    }
    if (now_ >= proposer_.resend && !planted(Bug::forgotten_timer)) resend();
}

}  // namespace nexar::membership
