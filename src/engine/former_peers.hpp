#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <nexar/error.hpp>
#include <optional>
#include "base/types.hpp"

#include "base/identity.hpp"

namespace nexar::engine {

/// Why operations with a peer that the members evicted in this epoch fail.
inline Error error_of_eviction(Epoch epoch) {
    return {Errc::membership_changed, fmt::format("the peer was lost in epoch {}", epoch.value())};
}

/// The last nodes whose Peer the engine has freed, so that operations with them still fail as they
/// did before. A Peer has kilobytes, this has a few bytes for each.
class FormerPeers {
public:
    static constexpr std::size_t kMost = 4096;

    struct Former {
        NodeId node{};
        std::optional<Epoch> evicted{};  // nullopt: it left

        Error reason() const {
            return evicted ? error_of_eviction(*evicted)
                           : Error(Errc::link_closed, "the peer left the cluster");
        }
    };

    void add(const NodeId& node, std::optional<Epoch> evicted) {
        const Former* const known = find(node);
        if (known != nullptr && known->evicted == evicted) return;
        if (all_.size() == kMost) all_.pop_front();
        all_.push_back({.node = node, .evicted = evicted});
    }

    /// The newest entry of a node; nullptr if there is none.
    const Former* find(const NodeId& node) const noexcept {
        const auto found = std::find_if(all_.rbegin(), all_.rend(),
                                        [&](const Former& one) { return one.node == node; });
        return found == all_.rend() ? nullptr : &*found;
    }

private:
    std::deque<Former> all_;  // oldest first
};

}  // namespace nexar::engine
