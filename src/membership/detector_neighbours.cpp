#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "membership/detector.hpp"
#include "membership/planted.hpp"

/// Sparse topologies: the neighbours of a member watch it, and nobody else can tell whether it
/// lives, because what has failed may be a relay.
namespace nexar::membership {
namespace {

/// This many members count accusations, besides the neighbours of the accused. They are also the
/// first that propose its eviction.
constexpr std::size_t kCounters = 3;
/// An accusation is repeated every B/2. One that is older than this many budgets is void.
constexpr int kAccusationLife = 2;

}  // namespace

bool Detector::sparse() const {
    return connections_.known() && !planted(Bug::dead_relay_accuses);
}

/// Heartbeats go to the neighbours, and come from them.
void Detector::connect(TimePoint now, std::vector<Peer>& peers, const View& view) {
    const auto own = std::ranges::find(view.members, self_.node, &Member::node);
    if (own == view.members.end()) {
        connections_ = {};
        return;
    }
    Connections connections(view, neighbours_of_);
    const auto me = static_cast<Connections::Position>(own - view.members.begin());
    Connections::Position position = 0;
    for (Peer& peer : peers) {
        if (peer.witness) continue;  // the last one
        if (position == me) ++position;
        const Connections::Position before = std::exchange(peer.position, position++);
        peer.observed = connections.between(me, peer.position);
        peer.target = peer.observed && timing_.silence;
        if (peer.probing && !peer.reconnecting &&
            has_new_neighbours(before, view, connections, peer.position))
            peer.reconnecting = now;
    }
    connections_ = std::move(connections);
    own_ = me;
}

/// `before` is the position of a member in the view that this node had until now, `after` that in
/// the new one.
bool Detector::has_new_neighbours(Connections::Position before, const View& view,
                                  const Connections& connections,
                                  Connections::Position after) const {
    if (!connections_.known()) return true;
    const auto was = connections_.of(before);
    return std::ranges::any_of(connections.of(after), [&](Connections::Position one) {
        const NodeId& node = view.members[one].node;
        return std::ranges::none_of(
            was, [&](Connections::Position old) { return view_.members[old].node == node; });
    });
}

/// nullptr: this node.
const Detector::Peer* Detector::member_at(Connections::Position position) const {
    if (position == own_) return nullptr;
    const Peer& peer = peers_[position < own_ ? position : position - 1];
    NEXAR_ASSERT(peer.position == position && !peer.witness);
    return &peer;
}

bool Detector::near(const NodeId& node) const {
    const Peer* const peer = find(node);
    return !sparse() || (peer != nullptr && (peer->observed || peer->witness));
}

Detector::Opinion Detector::verdict(const NodeId& node, TimePoint now) const {
    const Peer* const peer = find(node);
    const bool doubt = peer != nullptr && peer->unreachable && !peer->left && !peer->gone;
    if (doubt && !abandoned(*peer, now)) return Opinion::probing;
    return opinion(node);
}

/// Whether this node can expect a neighbour of an unreachable member to say what it thinks.
bool Detector::has_a_say(const Peer& neighbour) {
    return !neighbour.unreachable && !neighbour.gone && !neighbour.left && !neighbour.cut_off;
}

bool Detector::accuses(const Peer& accuser, const Peer& peer) {
    return std::ranges::find(peer.accusers, accuser.node, &Accuser::node) != peer.accusers.end();
}

/// True if no neighbour of an unreachable member stands up for it. Each neighbour that this node
/// reaches must accuse it; one that says nothing for a whole budget has lost its say, because it
/// may have missed the question, or run late. A neighbour that this node does not reach counts only
/// if it said a moment ago that it hears the member.
///
/// If this node reaches less than half of the neighbours, the others may have failed, and the
/// member may live behind them: a neighbour that accuses it may only have lost the direct path. It
/// gets a whole budget, in which a view without them can give it new neighbours; and these get time
/// to connect.
bool Detector::abandoned(const Peer& peer, TimePoint now) const {
    if (!sparse() || peer.witness || peer.gone) return true;
    if (peer.reconnecting && now - *peer.reconnecting < timing_.patience()) return false;

    const bool waited = peer.asked && now - *peer.asked >= timing_.whole;
    std::size_t reached = 0;
    std::size_t failed = 0;
    bool accused = false;
    for (const Connections::Position position : connections_.of(peer.position)) {
        const Peer* const neighbour = member_at(position);
        if (neighbour == nullptr) {
            ++reached;
            accused = true;
            continue;
        }

        const auto hears = std::ranges::find(peer.hearers, neighbour->node, &Hearer::node);
        if (hears != peer.hearers.end() && now - hears->at < timing_.whole) return false;

        if (!has_a_say(*neighbour)) {
            ++failed;
            continue;
        }
        ++reached;
        if (accuses(*neighbour, peer)) {
            accused = true;
        } else if (!waited) {
            return false;
        }
    }
    const bool lasts = peer.probing && now - *peer.probing >= timing_.whole;
    if (reached == 0) return lasts;
    return accused && (reached >= failed || lasts);
}

/// True if most neighbours of a member that this node reaches accuse it, so that this node, which
/// is none of them, need not probe it for long. Not all: this node may reach some only through it.
bool Detector::accused_by_neighbours(const Peer& peer) const {
    if (!sparse() || peer.observed || peer.witness) return false;
    std::size_t accusers = 0;
    std::size_t others = 0;
    for (const Connections::Position position : connections_.of(peer.position)) {
        const Peer& neighbour = *member_at(position);
        if (has_a_say(neighbour)) ++(accuses(neighbour, peer) ? accusers : others);
    }
    return accusers > others;
}

/// Whether a peer needs to know what this node thinks about another one. All must know what its
/// neighbours think; only those that count the accusations must know what the others think.
bool Detector::concerned(const Peer& recipient, const Peer& about, wire::SuspicionStep step) const {
    if (!sparse() || recipient.node == about.node) return true;
    const bool neighbour =
        !recipient.witness && connections_.between(recipient.position, about.position);
    if (neighbour || step == wire::SuspicionStep::asked) return neighbour;
    if (about.observed || recipient.witness) return true;
    std::size_t before = 0;
    for (const Peer& one : peers_) {
        if (one.node == recipient.node) return before < kCounters;
        if (!one.unreachable && !one.gone && !one.left && one.node != about.node) ++before;
        if (before == kCounters) return false;
    }
    return false;
}

/// Whether the counter of an accusation says if the accused has refuted it. In a sparse topology,
/// only its neighbours receive every refutation. And one of them may have missed it, but its word
/// may be needed: a refutation is a sign of life, which proves nothing after a whole budget.
bool Detector::refutable(const Peer& peer, const NodeId& accuser, TimePoint now) const {
    if (!sparse()) return true;
    const Peer* const one = find(accuser);
    const bool neighbour =
        one != nullptr && !one->witness && connections_.between(one->position, peer.position);
    return neighbour && now - peer.heard < timing_.whole;
}

/// Forgets accusations that are no longer repeated: a `hears` may have gone to other members.
void Detector::forget_accusations(TimePoint now) {
    if (!sparse()) return;
    for (Peer& peer : peers_) {
        std::erase_if(peer.accusers, [&](const Accuser& one) {
            return now - one.at >= timing_.whole * kAccusationLife;
        });
    }
}

void Detector::find_cut_off() {
    if (!sparse()) return;
    if (!alarm_) {
        for (Peer& peer : peers_) peer.cut_off = false;
        return;
    }
    std::vector<bool> down(view_.members.size());
    for (const Peer& peer : peers_) {
        if (!peer.witness) down[peer.position] = peer.unreachable || peer.gone || peer.left;
    }
    const std::vector<bool> reached = connections_.reach(own_, down);
    for (Peer& peer : peers_) peer.cut_off = !peer.witness && !reached[peer.position];
}

/// A node that missed the goodbye of a member waits for what the neighbours say about it.
void Detector::answer_about_leaver(TimePoint now, Peer& peer) {
    if (!peer.observed || now < peer.next_question) return;
    peer.next_question = now + timing_.whole / 2;
    tell_all(peer, wire::SuspicionStep::suspected);
}

}  // namespace nexar::membership
