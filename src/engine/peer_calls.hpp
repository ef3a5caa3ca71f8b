#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/call.hpp"
#include "engine/intrusive_list.hpp"

namespace nexar::engine {

/// The calls between this node and one peer.
struct PeerCalls {
    // Made by this node.
    std::uint64_t next_out = 0;
    IntrusiveList<CallOperation, &CallOperation::waiting_hook> waiting{};
    std::unordered_map<std::uint64_t, CallOperation*> sent{};
    std::unordered_set<std::uint64_t> owed{};  // answers that the peer owes to abandoned calls

    // Made by the peer.
    std::uint64_t next_in = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<InCall>> in{};
    std::uint64_t held = 0;      // bytes, not counting the lane's backlog; see CallLimits::max_held
    std::optional<Rank> rank{};  // the peer's, once it was looked up
};

}  // namespace nexar::engine
