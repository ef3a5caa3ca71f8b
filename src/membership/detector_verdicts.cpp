#include <algorithm>

#include "membership/detector.hpp"
#include "membership/planted.hpp"

namespace nexar::membership {

TimePoint Detector::heard_at(const NodeId& node) const {
    const Peer* const peer = find(node);
    return peer == nullptr ? TimePoint::min() : peer->heard;
}

bool Detector::confirmed(const Peer& peer, TimePoint now) const {
    if (!peer.unreachable) return false;
    if (planted(Bug::eviction_although_heard)) return true;
    if (!abandoned(peer, now)) return false;
    if (peer.gone || !peer.accusers.empty()) return true;
    if (!peer.asked || now - *peer.asked < patience(peer)) return false;
    // A node that still hears it says so again: this node repeats the question.
    return std::ranges::none_of(peer.hearers, [&](const Hearer& one) {
        return one.at >= *peer.asked && now - one.at < timing_.whole;
    });
}

/// True if a majority of the voters will vote for the eviction, according to what they said. A
/// ballot without them would leave votes behind that evict the peer later.
bool Detector::agreed(const Peer& peer, TimePoint now) const {
    std::size_t votes = 1;  // of this node
    for (const Accuser& one : peer.accusers) {
        if (one.node != peer.node && view_.find(one.node) != nullptr) ++votes;
    }
    if (view_.witness && view_.witness_votes()) {
        // A seed accuses nobody, but says if it hears the peer.
        const auto hears = std::ranges::find(peer.hearers, view_.witness->seed, &Hearer::node);
        if (hears == peer.hearers.end() || now - hears->at >= timing_.whole) ++votes;
    }
    if (planted(Bug::minority_commits) || planted(Bug::eviction_although_heard)) return true;
    return votes >= view_.majority();
}

std::vector<NodeId> Detector::failed(TimePoint now) const {
    std::vector<NodeId> nodes;
    if (seed_) return nodes;
    nodes.reserve(peers_.size());
    for (const Peer& peer : peers_) {
        if (peer.witness || peer.left) continue;
        if (confirmed(peer, now) && agreed(peer, now)) nodes.push_back(peer.node);
    }
    return nodes;
}

std::vector<NodeId> Detector::departed() const {
    std::vector<NodeId> nodes;
    if (seed_) return nodes;
    nodes.reserve(peers_.size());
    for (const Peer& peer : peers_) {
        if (peer.left && !peer.witness) nodes.push_back(peer.node);
    }
    return nodes;
}

void Detector::count_voters() {
    if (seed_) return;
    std::size_t reached = view_.find(self_.node) != nullptr ? 1 : 0;
    std::size_t voters = reached;
    for (const Peer& peer : peers_) {
        // A member that left in good order is on no side of a partition.
        if (peer.left || (peer.witness && !view_.witness_votes())) continue;
        ++voters;
        if (!peer.unreachable && !peer.gone) ++reached;
    }
    const bool minority = reached < voters / 2 + 1;
    if (minority == minority_) return;
    minority_ = minority;
    events_.emplace_back(Minority{.minority = minority});
}

void Detector::schedule(TimePoint now) {
    TimePoint next = TimePoint::max();
    for (const Peer& peer : peers_) {
        if (peer.left) continue;
        if (peer.target || (peer.witness && informs_witness_))
            next = std::min(next, next_heartbeat_);
        if (peer.probing) {
            next = std::min(next, peer.next_probe);
            if (!peer.unreachable && patience(peer) < timing_.whole * 16)
                next = std::min(next, *peer.probing + patience(peer));
        } else if (watched(peer)) {
            const double factor = stretch_ * start_factor(peer);
            const auto quiet = static_cast<double>(timing_.quiet().count()) * factor;
            next = std::min(next, peer.heard + Duration(static_cast<Duration::rep>(quiet)));
        }
    }
    // What is already due is due now: this node is not late.
    deadline_ = std::max(next, now);
}

}  // namespace nexar::membership
