#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/error.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>
#include "base/types.hpp"

#include "base/identity.hpp"
#include "base/mix.hpp"
#include "engine/collective.hpp"
#include "engine/credit.hpp"
#include "engine/in_bulk.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/lane_reader.hpp"
#include "engine/message.hpp"
#include "engine/operation.hpp"
#include "engine/peer_calls.hpp"
#include "port/link.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// Names a message between two nodes.
struct MessageName {
    ContextId context{};
    Sequence sequence{};

    friend bool operator==(const MessageName&, const MessageName&) noexcept = default;
};

/// `seed` keeps names of a peer's choice from meeting in one bucket.
struct MessageNameHash {
    std::uint64_t seed = 0;

    std::size_t operator()(const MessageName& name) const noexcept {
        return mixed(name.sequence.value() ^ mixed(seed ^ name.context.value()));
    }
};

/// What this node and a peer share in one communicator.
struct Pair {
    Pair(Peer& other, ContextId name, const Amount& reserve) noexcept
        : peer(&other), context_id(name), reserve_out(reserve), reserve_in(reserve) {}

    Peer* peer;
    ContextId context_id;
    Context* context = nullptr;  // nullptr: this side has not made it yet, or has ended it
    Rank rank{};                 // the peer's in the communicator
    bool ended = false;          // by this side: what comes is dropped
    bool begun_out = false;      // the peer was told which communicator it is
    bool end_due = false;        // the peer is to be told that it ended
    std::optional<wire::ContextBegin> begun_in{};  // what the peer said; none when it ended it
    Sequence next_out{};
    Sequence next_in{};
    CreditOut reserve_out;
    CreditIn reserve_in;
    IntrusiveList<SendOperation, &SendOperation::waiting_hook> waiting{};
    std::vector<InMessage*> early{};  // came before the communicator was made here
    bool blocked = false;             // its first waiting send lacks credit or room
    Hook<Pair> blocked_hook{};

    std::unique_ptr<PairCollectives> collectives{};  // once there are some
    bool collectives_blocked = false;
    std::uint64_t collectives_called = 0;  // by this side, when it ended
    Hook<Pair> collectives_hook{};
};

/// Another node, and everything that is under way to it and from it.
struct Peer {
    Peer(const NodeId& id, const Amount& shared, std::uint64_t hash_seed = 0)
        : node(id), shared_out(shared), shared_in(shared), hash{hash_seed} {}

    NodeId node;
    port::Link* link = nullptr;   // while it is up
    std::optional<Error> lost{};  // why there is none any more
    bool wanted = false;          // somebody was told that a link is needed
    /// How it broke the rules: nothing of it is looked at any more, Down will come.
    std::optional<Error> violation{};
    /// What it said of why it leaves; Down will come.
    std::optional<Error> farewell{};

    CreditOut shared_out;
    CreditIn shared_in;

    MessageNameHash hash;  // of the tables below

    std::unordered_map<ContextId, std::unique_ptr<Pair>> pairs{};
    Pair* last_pair = nullptr;  // of the message before
    IntrusiveList<Pair, &Pair::blocked_hook> blocked{};
    bool eager_full = false;

    std::unordered_map<std::uint64_t, SendOperation*> streams_out{};
    std::unordered_map<MessageName, SendOperation*, MessageNameHash> announced{0, hash};
    /// Messages that were taken back, until the peer says what became of them; nullptr: the send
    /// has ended without its answer.
    std::unordered_map<MessageName, SendOperation*, MessageNameHash> asking{0, hash};

    std::unordered_map<std::uint64_t, std::unique_ptr<InBulk>> streams_in{};
    std::unordered_map<MessageName, InMessage*, MessageNameHash> bulk_in{0, hash};
    std::unordered_map<MessageName, InBulk*, MessageNameHash> early_streams{0, hash};
    /// Messages whose stream was given up, until the peer asks what became of them.
    std::unordered_set<MessageName, MessageNameHash> given_up{0, hash};
    /// Messages that were taken back before their header came.
    std::unordered_set<MessageName, MessageNameHash> taken_back{0, hash};
    /// Messages whose payload has not come whole, in any state.
    IntrusiveList<InMessage, &InMessage::peer_hook> incomplete{};

    PeerCalls calls{};
    PeerCollectives collectives{};
    IntrusiveList<Pair, &Pair::collectives_hook> collectives_blocked{};

    /// Control frames that the lane had no room for.
    std::deque<std::vector<std::byte>> control_backlog{};

    // The lanes of the link; made with it.
    std::unique_ptr<LaneReader::Taker> control_taker{};
    std::unique_ptr<LaneReader::Taker> rpc_taker{};
    std::unique_ptr<LaneReader::Taker> eager_taker{};
    std::vector<std::unique_ptr<LaneReader>> readers{};
};

}  // namespace nexar::engine
