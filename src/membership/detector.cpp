#include "membership/detector.hpp"

#include <algorithm>
#include <utility>

#include "membership/planted.hpp"

namespace nexar::membership {
namespace {

constexpr std::size_t kMostTargets = 8;
/// This many members send heartbeats to the witness, so that it learns of views that it missed.
constexpr std::size_t kInformants = 2;
constexpr double kMostStretch = 4;
constexpr unsigned kRefusals = 2;
/// A member that was never heard may still be starting.
constexpr int kStartFactor = 4;

Duration stretched(Duration time, double factor) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * factor));
}

}  // namespace

Detector::Detector(TimePoint now, const Identity& self, const Options& options)
    : self_(self),
      seed_(options.seed),
      timing_(options.budget),
      neighbours_of_(options.seed ? NeighboursOf() : options.neighbours),
      next_heartbeat_(now),
      deadline_(now) {}

Detector::Peer* Detector::find(const NodeId& node) {
    const auto at = std::ranges::find(peers_, node, &Peer::node);
    return at == peers_.end() ? nullptr : &*at;
}

const Detector::Peer* Detector::find(const NodeId& node) const {
    const auto at = std::ranges::find(peers_, node, &Peer::node);
    return at == peers_.end() ? nullptr : &*at;
}

void Detector::adopt(TimePoint now, const View& view) {
    std::vector<Peer> peers;
    peers.reserve(view.members.size() + 1);
    const auto add = [&](const NodeId& node, Incarnation incarnation, bool witness) {
        if (node == self_.node) return;
        Peer* const old = find(node);
        if (old != nullptr && old->incarnation == incarnation) {
            peers.push_back(std::move(*old));
        } else {
            peers.push_back({.node = node, .incarnation = incarnation, .heard = now, .since = now});
        }
        peers.back().witness = witness;
        std::erase_if(peers.back().accusers,
                      [&](const Accuser& one) { return view.find(one.node) == nullptr; });
    };
    for (const Member& member : view.members) add(member.node, member.incarnation, false);
    if (view.witness && view.find(view.witness->seed) == nullptr)
        add(view.witness->seed, view.witness->incarnation, true);
    if (!seed_) place(peers, view);
    if (neighbours_of_) connect(now, peers, view);
    for (Peer& peer : peers) {
        // Silence counts from now for a peer that this node did not observe before.
        const Peer* const old = find(peer.node);
        if (peer.observed && (old == nullptr || !old->observed) && !peer.probing)
            peer.heard = std::max(peer.heard, now);
    }
    peers_ = std::move(peers);
    view_ = view;
    alarm_ = std::ranges::any_of(peers_, &Peer::unreachable);
    find_cut_off();
    count_voters();
    schedule(now);
}

/// Heartbeats go to the next members in the order of ranks, and come from those before.
void Detector::place(std::vector<Peer>& peers, const View& view) {
    const std::size_t members = view.members.size();
    const auto own = std::ranges::find(view.members, self_.node, &Member::node);
    if (own == view.members.end()) return;
    const auto me = static_cast<std::size_t>(own - view.members.begin());
    informs_witness_ = me < kInformants;
    const std::size_t targets = std::min(members - 1, kMostTargets);
    for (Peer& peer : peers) {
        peer.target = false;
        if (peer.witness) continue;
        const auto at = std::ranges::find(view.members, peer.node, &Member::node);
        const auto index = static_cast<std::size_t>(at - view.members.begin());
        peer.target = timing_.silence && (index + members - me) % members <= targets;
        peer.observed = (me + members - index) % members <= targets;
    }
}

void Detector::check_clock(TimePoint now) {
    if (deadline_ == TimePoint::max() || now <= deadline_ + timing_.late()) return;
    // This node did not run for a while. It may have missed heartbeats in that time.
    shift(now, now - deadline_);
    stretch_ = std::min(kMostStretch, stretch_ * 2);
    deadline_ = now;
}

/// The time of which this node knows nothing counts neither as silence nor as delay.
void Detector::shift(TimePoint now, Duration by) {
    const auto move = [&](TimePoint& time) { time = std::min(time + by, now); };
    for (Peer& peer : peers_) {
        move(peer.heard);
        if (peer.probing) move(*peer.probing);
        if (peer.asked) move(*peer.asked);
        if (peer.reconnecting) move(*peer.reconnecting);
        for (Hearer& one : peer.hearers) move(one.at);
        peer.next_probe = std::max(peer.next_probe, now);
        peer.next_question = std::max(peer.next_question, now);
    }
    next_heartbeat_ = std::max(next_heartbeat_, now);
}

Duration Detector::patience(const Peer& peer) const {
    if (peer.gone && !planted(Bug::hint_ignored)) return Duration::zero();
    // What a relay refuses proves nothing about the peer.
    const bool refuses = peer.refused >= kRefusals && peer.ever_heard &&
                         (!sparse() || peer.observed || peer.witness);
    if (refuses || accused_by_neighbours(peer))
        return stretched(timing_.refused_patience(), stretch_);
    if (!timing_.silence && !seed_) return Duration::max() / 2;
    return stretched(timing_.patience() * start_factor(peer), stretch_);
}

int Detector::start_factor(const Peer& peer) const {
    // A node that suspects it has waited long enough for it to start.
    if (seed_ || peer.ever_heard || !peer.accusers.empty()) return 1;
    return last_turn_ - peer.since < timing_.whole * kStartFactor ? kStartFactor : 1;
}

bool Detector::watched(const Peer& peer) const {
    if (seed_ || peer.left) return false;
    // It may not vote, but know of a later view.
    if (peer.witness) return alarm_;
    return (peer.observed && timing_.silence) || (alarm_ && (!sparse() || peer.cut_off));
}

Detector::Opinion Detector::opinion(const NodeId& node) const {
    const Peer* const peer = find(node);
    if (peer == nullptr || peer->left || peer->gone || peer->unreachable)
        return Opinion::unreachable;
    return peer->probing ? Opinion::probing : Opinion::reachable;
}

bool Detector::hears(const NodeId& node) const {
    if (node == self_.node) return true;
    const Peer* const peer = find(node);
    return peer != nullptr && peer->ever_heard && !peer->unreachable && !peer->left && !peer->gone;
}

bool Detector::left(const NodeId& node) const {
    const Peer* const peer = find(node);
    return peer != nullptr && peer->left;
}

void Detector::turn(TimePoint now) {
    last_turn_ = now;
    forget_accusations(now);
    if (now >= next_heartbeat_) {
        for (Peer& peer : peers_) {
            const bool due = peer.target || (peer.witness && informs_witness_);
            if (due && !peer.left && !peer.probing) send_heartbeat(now, peer, false);
        }
        next_heartbeat_ = std::max(next_heartbeat_ + timing_.heartbeat(), now);
        stretch_ = std::max(1.0, stretch_ * 0.9);
    }
    for (Peer& peer : peers_) look_at(now, peer);
    alarm_ = std::ranges::any_of(peers_, &Peer::unreachable);
    find_cut_off();
    count_voters();
    schedule(now);
}

void Detector::look_at(TimePoint now, Peer& peer) {
    if (peer.left) return;
    const Duration quiet = stretched(timing_.quiet() * start_factor(peer), stretch_);
    if (!peer.probing && watched(peer) && now - peer.heard >= quiet) {
        start_probe(now, peer);
        // Who could answer for a peer that is cut off?
        if (!peer.witness && (!sparse() || peer.observed)) ask(now, peer);
    }
    if (!peer.probing) return;
    if (!peer.unreachable && now - *peer.probing >= patience(peer)) give_up(now, peer);
    if (now >= peer.next_probe) {
        send_heartbeat(now, peer, true);
        peer.next_probe = now + (peer.unreachable ? timing_.heartbeat() : timing_.probe());
    }
    if (seed_ || peer.witness) return;
    if (peer.unreachable && now >= peer.next_question) ask(now, peer);
    const bool elsewhere = std::ranges::any_of(
        peer.hearers, [&](const Hearer& one) { return now - one.at < timing_.whole; });
    // Nobody is evicted for this, so it can wait until the trouble lasts.
    const bool lasts = now - *peer.probing >= timing_.whole * 2;
    if (peer.unreachable && elsewhere && lasts && !peer.reported) {
        peer.reported = true;
        events_.emplace_back(Unreachable{.node = peer.node, .unreachable = true});
    }
}

void Detector::give_up(TimePoint now, Peer& peer) {
    peer.unreachable = true;
    if (seed_) return;
    alarm_ = true;
    if (peer.witness) return;
    if (!peer.gone) events_.emplace_back(Silent{.node = peer.node, .silent = true});
    ask(now, peer);
}

void Detector::start_probe(TimePoint now, Peer& peer) {
    if (peer.probing) return;
    peer.probing = now;
    peer.next_probe = now;
    peer.refused = 0;
}

void Detector::probe(TimePoint now, const NodeId& node) {
    Peer* const peer = find(node);
    if (peer == nullptr) return;
    start_probe(now, *peer);
    look_at(now, *peer);
    schedule(now);
}

void Detector::ask(TimePoint now, Peer& peer) {
    if (!peer.asked) peer.asked = now;
    peer.next_question = now + timing_.whole / 2;
    tell_all(peer, peer.unreachable ? wire::SuspicionStep::suspected : wire::SuspicionStep::asked);
}

void Detector::heartbeat(TimePoint now, const Identity& from, const wire::Heartbeat& message) {
    Peer* const peer = find(from.node);
    if (peer == nullptr) return;
    if (peer->incarnation != from.incarnation && !planted(Bug::restored_witness_votes)) {
        // A seed that lost its votes: the witness of the view will never vote again.
        if (message.wants_answer) send_heartbeat(now, *peer, false);
        return;
    }
    // A witness that was restarted counts its heartbeats from 1 again.
    const bool late = message.number <= peer->heard_number && !peer->witness;
    if (late && !planted(Bug::number_ignored)) return;
    peer->heard_number = std::max(peer->heard_number, message.number);
    peer->counter = std::max(peer->counter, message.counter);
    std::erase_if(peer->accusers, [&](const Accuser& one) { return one.counter < peer->counter; });
    peer->echo = message.sent_at;
    heard(now, *peer);
    if (message.wants_answer) send_heartbeat(now, *peer, false);
    schedule(now);
}

void Detector::heard(TimePoint now, Peer& peer) {
    // A packet that was in flight when its sender ended proves nothing.
    if (peer.gone && !planted(Bug::hint_ignored)) return;
    peer.heard = now;
    peer.ever_heard = true;
    for (const NodeId& asker : std::exchange(peer.askers, {}))
        tell(peer, wire::SuspicionStep::hears, asker);
    peer.probing.reset();
    peer.asked.reset();
    peer.reconnecting.reset();
    peer.refused = 0;
    if (!peer.unreachable || planted(Bug::recovery_ignored)) return;
    peer.unreachable = false;
    if (!seed_ && !peer.witness) {
        events_.emplace_back(Silent{.node = peer.node, .silent = false});
        tell_all(peer, wire::SuspicionStep::hears);
    }
    if (std::exchange(peer.reported, false))
        events_.emplace_back(Unreachable{.node = peer.node, .unreachable = false});
    count_voters();
}

void Detector::suspicion(TimePoint now, const NodeId& from, const wire::Suspicion& message) {
    const NodeId node(message.node);
    const Incarnation incarnation(message.incarnation);
    if (node == self_.node) {
        if (incarnation == self_.incarnation && message.step != wire::SuspicionStep::hears)
            refute(now, from, message.counter);
        return;
    }
    Peer* const peer = find(node);
    if (peer == nullptr || peer->witness) return;
    if (peer->incarnation != incarnation) return;
    const auto accuser = std::ranges::find(peer->accusers, from, &Accuser::node);
    if (message.step == wire::SuspicionStep::hears) {
        if (accuser != peer->accusers.end()) peer->accusers.erase(accuser);
        const auto hearer = std::ranges::find(peer->hearers, from, &Hearer::node);
        if (hearer != peer->hearers.end()) {
            hearer->at = now;
        } else {
            peer->hearers.push_back({.node = from, .at = now});
        }
        return;
    }
    if (message.step == wire::SuspicionStep::suspected) {
        std::erase_if(peer->hearers, [&](const Hearer& one) { return one.node == from; });
        const bool refuted = message.counter < peer->counter && refutable(*peer, from, now);
        if (accuser != peer->accusers.end()) {
            accuser->counter = std::max(accuser->counter, message.counter);
            accuser->at = now;
        } else if (!refuted) {
            peer->accusers.push_back({.node = from, .counter = message.counter, .at = now});
        }
    }
    if (sparse() && peer->left) {
        answer_about_leaver(now, *peer);
        return;
    }
    answer_later(*peer, from);
    start_probe(now, *peer);
    look_at(now, *peer);
    schedule(now);
}

void Detector::answer_later(Peer& peer, const NodeId& asker) {
    if (std::ranges::find(peer.askers, asker) == peer.askers.end()) peer.askers.push_back(asker);
}

void Detector::refute(TimePoint now, const NodeId& accuser, std::uint64_t counter) {
    const bool known = counter < counter_;  // the others have it, but heartbeats get lost
    counter_ = std::max(counter_, counter + 1);
    for (Peer& peer : peers_) {
        // In a sparse topology, the others hear of it from the neighbours, who say `hears`.
        const bool all = !known && (!sparse() || peer.observed);
        if (!peer.left && (all || peer.node == accuser)) send_heartbeat(now, peer, false);
    }
}

void Detector::hint(TimePoint now, const NodeId& node, Hint hint) {
    Peer* const peer = find(node);
    if (peer == nullptr || peer->left) return;
    switch (hint) {
        case Hint::left:
            peer->left = true;
            peer->probing.reset();
            break;
        case Hint::connected:
            if (peer->ever_heard || peer->gone) return;
            // The other side learns the same from this heartbeat, or from its own link.
            heard(now, *peer);
            if (timing_.silence) send_heartbeat(now, *peer, false);
            break;
        case Hint::gone:
            peer->gone = true;
            [[fallthrough]];
        case Hint::doubtful:
            if (peer->probing) ++peer->refused;
            start_probe(now, *peer);
            if (peer->refused == 0) peer->refused = 1;
            if (!seed_ && !peer->witness && !peer->asked) ask(now, *peer);
            look_at(now, *peer);
            break;
    }
    count_voters();
    schedule(now);
}

void Detector::send_heartbeat(TimePoint now, Peer& peer, bool wants_answer) {
    const bool answered = peer.echo != Duration::zero();
    peer.shown = now;
    outgoing_.push_back({.to = peer.node,
                         .message = wire::Heartbeat{
                             .epoch = view_.epoch,
                             .number = ++sent_number_,
                             .sent_at = now.time_since_epoch(),
                             .echo = peer.echo,
                             .echo_delay = answered ? std::max(now - peer.heard, Duration::zero())
                                                    : Duration::zero(),
                             .counter = counter_,
                             .wants_answer = wants_answer}});
}

void Detector::show_epoch(TimePoint now, const NodeId& node) {
    Peer* const peer = find(node);
    if (peer == nullptr || now - peer->shown < timing_.probe()) return;
    send_heartbeat(now, *peer, true);
}

void Detector::tell(const Peer& about, wire::SuspicionStep step, const NodeId& to) {
    outgoing_.push_back({.to = to,
                         .message = wire::Suspicion{.step = step,
                                                    .node = about.node.bytes(),
                                                    .incarnation = about.incarnation.value(),
                                                    .counter = about.counter}});
}

/// The accused hears it too, so that it can refute.
void Detector::tell_all(const Peer& about, wire::SuspicionStep step) {
    for (const Peer& peer : peers_) {
        if (!peer.left && concerned(peer, about, step)) tell(about, step, peer.node);
    }
}

}  // namespace nexar::membership
