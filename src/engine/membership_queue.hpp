#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/identity.hpp"
#include "engine/peer.hpp"
#include "membership/membership.hpp"

namespace nexar::engine {

/// A message of a peer for the membership of this node.
struct MembershipNews {
    Identity from{};
    membership::Message message{};
};

/// Evidence about a peer.
struct PeerHint {
    NodeId node{};
    membership::Hint hint{};
};

/// What peers say about the members of the cluster, and what this node notices about them, until
/// the owner of the engine takes it. A peer that says more than its share is not heard.
class MembershipQueue {
public:
    static constexpr std::size_t kMostMessages = 64;  // of one peer
    static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

    /// Keeps a message whose encoding has this many bytes, or drops it.
    void add(Peer& peer, membership::Message message, std::size_t bytes) {
        PeerMembership& here = peer.membership;
        if (here.waiting >= kMostMessages || here.bytes + bytes > kMostBytes) return;
        ++here.waiting;
        here.bytes += bytes;
        news_.push_back({.peer = &peer,
                         .bytes = bytes,
                         .news = {.from = peer.identity, .message = std::move(message)}});
    }

    /// Skips messages of nodes that were evicted meanwhile.
    std::optional<MembershipNews> poll() {
        while (!news_.empty()) {
            Entry first = std::move(news_.front());
            news_.pop_front();
            --first.peer->membership.waiting;
            first.peer->membership.bytes -= first.bytes;
            if (!first.peer->evicted) return std::move(first.news);
        }
        return std::nullopt;
    }

    /// Keeps one hint of each kind.
    void hint(Peer& peer, membership::Hint hint) {
        if (std::exchange(hinted(peer, hint), true)) return;
        hints_.emplace_back(&peer, hint);
    }

    std::optional<PeerHint> poll_hint() {
        if (hints_.empty()) return std::nullopt;
        const auto [peer, hint] = hints_.front();
        hints_.pop_front();
        hinted(*peer, hint) = false;
        return PeerHint{.node = peer->node, .hint = hint};
    }

private:
    struct Entry {
        Peer* peer = nullptr;
        std::size_t bytes = 0;
        MembershipNews news{};
    };

    static bool& hinted(Peer& peer, membership::Hint hint) {
        return peer.membership.hinted.at(static_cast<std::size_t>(hint));
    }

    std::deque<Entry> news_;
    std::deque<std::pair<Peer*, membership::Hint>> hints_;
};

}  // namespace nexar::engine
