#include "membership/membership.hpp"

#include <algorithm>
#include <utility>

#include "membership/planted.hpp"
#include "membership/state.hpp"
#include "wire/view.hpp"

namespace nexar::membership {
namespace {

constexpr std::size_t kMostHistory = 16;
constexpr std::size_t kMostViewsAtOnce = 4;
constexpr std::size_t kMostRecipients = 256;
constexpr std::size_t kMostRemoved = 4096;

}  // namespace

Membership::Membership(TimePoint now, const Identity& self, const Vote& known,
                       const Options& options)
    : state_(std::make_unique<State>(now, self, known, options)) {}
Membership::~Membership() = default;

void Membership::handle(TimePoint now, const Identity& from, bool from_seed,
                        const Message& message) {
    state_->handle(now, from, from_seed, message);
}
void Membership::hint(TimePoint now, const NodeId& node, Hint hint) {
    state_->hint(now, node, hint);
}
void Membership::propose_members(TimePoint now, std::vector<Member> joiners,
                                 const std::vector<SpentToken>& limits) {
    state_->propose_members(now, std::move(joiners), limits);
}
void Membership::withdraw_member(const NodeId& node) {
    state_->withdraw_member(node);
}
void Membership::propose_witness(TimePoint now, const Witness& witness) {
    state_->propose_witness(now, witness);
}
void Membership::leave(TimePoint now) {
    state_->leave(now);
}
void Membership::turn(TimePoint now) {
    state_->turn(now);
}
std::optional<TimePoint> Membership::next_deadline() const {
    return state_->next_deadline();
}
const View& Membership::view() const {
    return state_->view();
}
bool Membership::hears(const NodeId& node) const {
    return state_->detector().hears(node);
}
std::optional<Vote> Membership::unkept() const {
    if (!state_->acceptor().unkept()) return std::nullopt;
    return state_->acceptor().vote();
}
void Membership::kept() {
    state_->kept();
}
std::optional<Outgoing> Membership::poll_outgoing() {
    return state_->poll_outgoing();
}
std::optional<Event> Membership::poll_event() {
    return state_->poll_event();
}

Membership::State::State(TimePoint now, const Identity& self, const Vote& known,
                         const Options& options)
    : self_(self),
      options_(options),
      timing_(options.budget),
      random_(options.random_seed),
      now_(now),
      detector_(now, self, options),
      acceptor_(known),
      voted_at_(now) {
    proposer_.saw(known.promised);
    learner_.adopt(view());
    detector_.adopt(now, view());
    history_.push_back(view());
}

void Membership::State::begin(TimePoint now) {
    now_ = std::max(now_, now);
    if (!over_) detector_.check_clock(now_);
}

void Membership::State::pump() {
    for (Outgoing& one : detector_.take_outgoing()) outgoing_.push_back(std::move(one));
    for (Event& one : detector_.take_events()) {
        if (!over_) events_.push_back(std::move(one));
    }
}

/// Does everything that the last call made possible.
void Membership::State::settle() {
    while (!over_) {
        if (!loopback_.empty() && (!acceptor_.unkept() || planted(Bug::answer_before_keeping))) {
            const auto [from, message] = std::move(loopback_.front());
            loopback_.pop_front();
            on_ballot(from, options_.seed, std::get<wire::Ballot>(message));
            continue;
        }
        if (const std::optional<View> decision = learner_.decision(informants())) {
            decide(*decision);
            continue;
        }
        decide_pending();
        advance_ballot();
        consider();
        if (loopback_.empty() || acceptor_.unkept()) break;
    }
    if (!detector_.idle()) pump();
}

void Membership::State::kept() {
    if (!acceptor_.unkept()) return;
    acceptor_.kept();
    settle();
}

void Membership::State::handle(TimePoint now, const Identity& from, bool from_seed,
                               const Message& message) {
    begin(now);
    if (over_ || from.cluster != self_.cluster || from.node == self_.node) return;
    if (!knows(from, from_seed)) {
        answer_stranger(from, message);
        settle();
        return;
    }
    if (const auto* const beat = std::get_if<wire::Heartbeat>(&message)) {
        on_heartbeat(from, *beat);
    } else if (const auto* const suspicion = std::get_if<wire::Suspicion>(&message)) {
        detector_.suspicion(now_, from.node, *suspicion);
    } else if (const auto* const ballot = std::get_if<wire::Ballot>(&message)) {
        on_ballot(from, from_seed, *ballot);
    } else if (const auto* const frame = std::get_if<wire::ViewFrame>(&message)) {
        on_view(from, from_seed, wire::from_wire(*frame));
    }
    settle();
}

bool Membership::State::knows(const Identity& from, bool from_seed) const {
    const Member* const member = view().find(from.node);
    if (member != nullptr) {
        return member->incarnation == from.incarnation;
    }
    return from_seed;
}

/// A former member learns that it was evicted; its certificate says that it belongs to this
/// cluster. And a seed that was away while all members changed learns the view from the new ones.
void Membership::State::answer_stranger(const Identity& from, const Message& message) {
    if (planted(Bug::evicted_not_told)) return;
    Epoch shown = view().epoch;
    if (const auto* const beat = std::get_if<wire::Heartbeat>(&message)) shown = beat->epoch;
    if (const auto* const ballot = std::get_if<wire::Ballot>(&message))
        shown = Epoch(ballot->epoch.value() - 1);
    if (shown < view().epoch) send_views(from.node, shown);
    if (!options_.seed) return;
    if (shown > view().epoch) send_views(from.node, Epoch{});  // it answers with later ones
    const auto* const frame = std::get_if<wire::ViewFrame>(&message);
    if (frame == nullptr || frame->epoch <= view().epoch) return;
    const View next = wire::from_wire(*frame);
    const Member* const member = next.find(from.node);
    if (member == nullptr || member->incarnation != from.incarnation) return;
    if (!learner_.has_vouches()) vouched_at_ = now_;
    learner_.vouched(from.node, Learner::Source::stranger, next);
    probe_all();
}

/// In a sparse topology only the neighbours. If they know nothing, a ballot asks the others; see
/// loose_end_at().
void Membership::State::probe_all() {
    for (const Member& member : view().members) {
        if (detector_.near(member.node)) detector_.probe(now_, member.node);
    }
    if (const auto& witness = view().witness) detector_.probe(now_, witness->seed);
}

void Membership::State::on_heartbeat(const Identity& from, const wire::Heartbeat& message) {
    detector_.heartbeat(now_, from, message);
    if (message.epoch < view().epoch) send_views(from.node, message.epoch);
    if (message.epoch > view().epoch) detector_.show_epoch(now_, from.node);
}

void Membership::State::on_view(const Identity& from, bool from_seed, const View& next) {
    if (planted(Bug::stale_view_adopted)) {
        if (next.epoch != view().epoch) decide(next);
        return;
    }
    if (next.epoch < view().epoch) send_views(from.node, next.epoch);
    if (next.epoch <= view().epoch) return;
    const bool follows = next.epoch.value() == view().epoch.value() + 1;
    if (follows && !compare(view(), next)) return;
    if (!learner_.has_vouches()) vouched_at_ = now_;
    learner_.vouched(from.node, from_seed ? Learner::Source::seed : Learner::Source::node, next);
    if (follows) proposer_.decided(now_, from.node, next);
    if (learner_.decision(informants())) return;
    // One node is not enough: ask the others, and find out which of them can answer.
    probe_all();
}

/// The number of other nodes of the view that could tell this one about a later view.
std::size_t Membership::State::informants() const {
    const auto answers = [&](const NodeId& node) {
        return node != self_.node && detector_.opinion(node) != Detector::Opinion::unreachable;
    };
    if (!learner_.has_vouches()) return 0;
    std::size_t others = 0;
    for (const Member& member : view().members) {
        if (answers(member.node)) ++others;
    }
    if (const auto& witness = view().witness; witness && answers(witness->seed)) ++others;
    return others;
}

void Membership::State::on_ballot(const Identity& from, bool from_seed,
                                  const wire::Ballot& ballot) {
    if (ballot.step == wire::BallotStep::refused) {
        on_refused(from, ballot);
        return;
    }
    const Epoch next(view().epoch.value() + 1);
    if (ballot.epoch < next && !planted(Bug::skip_epoch_check)) {
        // The sender, and perhaps others, missed a view.
        const Epoch known(ballot.epoch.value() - 1);
        send_views(from.node, known);
        for (const Member& member : view().members) send_views(member.node, known);
        return;
    }
    if (ballot.epoch > next) {
        const bool asks =
            ballot.step == wire::BallotStep::prepare || ballot.step == wire::BallotStep::accept;
        if (asks) refuse(from.node, ballot.number, {});
        detector_.show_epoch(now_, from.node);
        return;
    }
    proposer_.saw(ballot.number);
    const bool own = NodeId(ballot.number.proposer) == from.node;
    switch (ballot.step) {
        case wire::BallotStep::prepare:
            if (own) on_prepare(from, ballot);
            break;
        case wire::BallotStep::accept:
            if (own) on_accept(from, from_seed, ballot);
            break;
        case wire::BallotStep::promise:
            on_promise(from, ballot);
            break;
        case wire::BallotStep::accepted:
            learner_.voted(from.node, ballot.number, ballot.other);
            break;
        case wire::BallotStep::refused:
            break;
    }
}

void Membership::State::send(const NodeId& to, Message message) {
    if (to == self_.node) {
        loopback_.emplace_back(self_, std::move(message));
    } else {
        outgoing_.push_back({.to = to, .message = std::move(message)});
    }
}

void Membership::State::send_views(const NodeId& to, Epoch known) {
    if (to == self_.node || planted(Bug::view_not_resent)) return;
    const auto at = std::ranges::find(views_sent_, to, &Sent::node);
    if (at != views_sent_.end()) {
        if (now_ - at->at < timing_.probe()) return;
        at->at = now_;
    } else {
        if (views_sent_.size() >= kMostRecipients) views_sent_.erase(views_sent_.begin());
        views_sent_.push_back({.node = to, .at = now_});
    }
    const std::size_t first =
        history_.size() > kMostViewsAtOnce ? history_.size() - kMostViewsAtOnce : 0;
    for (std::size_t i = first; i < history_.size(); ++i) {
        if (history_[i].epoch > known) send(to, wire::in_wire(history_[i]));
    }
}

void Membership::State::tell_everyone(const View& old, const View& view) {
    std::vector<NodeId> nodes;
    nodes.reserve(old.members.size() + view.members.size() + 2);
    for (const Member& member : old.members) nodes.push_back(member.node);
    for (const Member& member : view.members) nodes.push_back(member.node);
    if (old.witness) nodes.push_back(old.witness->seed);
    if (view.witness) nodes.push_back(view.witness->seed);
    std::ranges::sort(nodes);
    const auto same = std::ranges::unique(nodes);
    nodes.erase(same.begin(), same.end());
    const wire::ViewFrame frame = wire::in_wire(view);
    for (const NodeId& node : nodes) {
        if (node != self_.node) send(node, frame);
    }
}

void Membership::State::decide(const View& next) {
    const View old = view();
    const bool proposed =
        proposer_.phase() == Proposer::Phase::accepting && proposer_.value() == next;
    acceptor_.advance(next);
    history_.push_back(next);
    if (history_.size() > kMostHistory) history_.erase(history_.begin());
    learner_.adopt(next);
    proposer_.stop();
    proposer_.forget_rounds();
    proposer_.start_at.reset();
    proposer_.not_before = now_;
    vouched_at_ = now_;
    proposer_.failures = 0;
    pending_.reset();
    loopback_.clear();
    if (proposed) tell_everyone(old, next);
    one_by_one_ = false;
    for (const Member& member : old.members) {
        const Member* const kept = next.find(member.node);
        if (kept != nullptr && kept->rank == member.rank) continue;
        if (removed_.size() >= kMostRemoved) removed_.erase(removed_.begin());
        removed_.push_back({.node = member.node, .incarnation = member.incarnation});
    }
    drop_served_joiners();
    if (witness_ == next.witness) witness_.reset();
    const auto in = [](const View& view, const Member& member) {
        const Member* const found = view.find(member.node);
        return found != nullptr && found->incarnation == member.incarnation;
    };
    // Another rank: this process was evicted, and then joined again behind its back.
    const Member* const own = next.find(self_.node);
    const Member* const before = old.find(self_.node);
    const bool same = own != nullptr && own->incarnation == self_.incarnation &&
                      (before == nullptr || before->rank == own->rank);
    if (!options_.seed && !same) {
        over_ = true;
        pump();
        events_.emplace_back(Evicted{.view = next});
        return;
    }
    detector_.adopt(now_, next);
    Decided event{.view = next};
    for (const Member& member : next.members) {
        if (!in(old, member)) event.joined.push_back(member.rank);
    }
    for (const Member& member : old.members) {
        if (in(next, member)) continue;
        const bool left = std::ranges::binary_search(next.left, member.rank);
        (left ? event.left : event.lost).push_back(member.rank);
    }
    pump();
    events_.emplace_back(std::move(event));
}

std::optional<Outgoing> Membership::State::poll_outgoing() {
    if (acceptor_.unkept() && !planted(Bug::answer_before_keeping)) return std::nullopt;
    if (outgoing_.empty()) return std::nullopt;
    std::optional<Outgoing> next(std::move(outgoing_.front()));
    outgoing_.pop_front();
    return next;
}

std::optional<Event> Membership::State::poll_event() {
    if (events_.empty()) return std::nullopt;
    std::optional<Event> next(std::move(events_.front()));
    events_.pop_front();
    return next;
}

}  // namespace nexar::membership
