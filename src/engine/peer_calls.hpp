#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/call.hpp"
#include "engine/intrusive_list.hpp"

namespace nexar::engine {

/// All calls between this node and one peer.
struct PeerCalls {
    // Made by this node.
    std::uint64_t next_out = 0;
    IntrusiveList<CallOperation, &CallOperation::waiting_hook> waiting{};
    std::unordered_map<std::uint64_t, CallOperation*> sent{};
    std::unordered_set<std::uint64_t> owed{};  // answers that nobody waits for any more

    // Made by the peer.
    std::uint64_t next_in = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<InCall>> in{};
    std::unordered_map<std::uint64_t, InBulk*> early{};  // payloads whose request has not come
    std::uint64_t held = 0;                              // bytes, see CallLimits::max_held
    std::optional<Rank> rank{};                          // the peer's, when it was looked up

    // The lane.
    bool full = false;
    std::deque<std::vector<std::byte>> backlog{};  // frames that it had no room for
    struct Payload {
        wire::CallPart part = wire::CallPart::none;  // none: not wanted
        std::uint64_t call = 0;
        std::vector<std::byte> bytes{};
        std::size_t came = 0;
    };
    Payload payload{};  // that follows the last frame

    // Payloads that are being sent, by stream: of a call of this node, or of a response.
    std::unordered_map<std::uint64_t, CallOperation*> requests_out{};
    std::unordered_map<std::uint64_t, InCall*> responses_out{};
};

}  // namespace nexar::engine
