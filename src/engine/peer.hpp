#pragma once

#include <array>
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
#include "engine/context.hpp"
#include "engine/credit.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/memory_buffers.hpp"
#include "engine/message.hpp"
#include "engine/operation.hpp"
#include "engine/peer_calls.hpp"
#include "engine/peer_transfers.hpp"
#include "engine/transfers.hpp"
#include "membership/membership.hpp"
#include "port/shared_memory.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// Names a message between two nodes.
struct MessageName {
    ContextId context{};
    Sequence sequence{};

    friend bool operator==(const MessageName&, const MessageName&) noexcept = default;
};

/// `seed` keeps a peer from choosing names that all fall into one bucket.
struct MessageNameHash {
    std::uint64_t seed = 0;

    std::size_t operator()(const MessageName& name) const noexcept {
        return mixed(name.sequence.value() ^ mixed(seed ^ name.context.value()));
    }
};

/// The state of one communicator between this node and a peer.
struct Pair {
    Pair(Peer& other, ContextId name, const Amount& reserve) noexcept
        : peer(&other), context_id(name), reserve_out(reserve), reserve_in(reserve) {}

    Peer* peer;
    ContextId context_id;
    Context* context = nullptr;  // nullptr: this side has not made it yet, or has ended it
    Rank rank{};                 // the peer's in the communicator
    bool ended = false;          // by this side: what arrives is dropped
    bool begun_out = false;      // this side has introduced the communicator to the peer
    bool end_due = false;        // this side must still tell the peer that it has ended it
    std::optional<wire::ContextBegin> begun_in{};  // the peer's introduction, until it ends it

    // Messages.
    Sequence next_out{};
    Sequence next_in{};
    CreditOut reserve_out;
    CreditIn reserve_in;
    IntrusiveList<SendOperation, &SendOperation::hook> waiting{};
    std::vector<InMessage*> early{};  // arrived before the communicator was made here
    bool blocked = false;             // its first waiting send lacks credit or room
    Hook<Pair> blocked_hook{};

    // Collectives.
    std::unique_ptr<PairCollectives> collectives{};  // made when first needed
    bool collectives_blocked = false;
    std::uint64_t collectives_called = 0;  // by this side, when it ended the communicator
    Hook<Pair> collectives_hook{};

    bool revoked_early = false;  // by the peer, before this side made the communicator
};

/// True if all operations of the communicator fail, so that what arrives for it is dropped.
inline bool is_over(const Pair& pair) noexcept {
    return pair.context != nullptr && pair.context->over;
}

/// The messages between this node and one peer, in all communicators.
struct PeerMessages {
    PeerMessages(const Amount& shared, std::uint64_t hash_seed)
        : shared_out(shared), shared_in(shared), hash{hash_seed} {}

    CreditOut shared_out;
    CreditIn shared_in;
    IntrusiveList<Pair, &Pair::blocked_hook> blocked{};

    MessageNameHash hash;  // of the tables below

    // Sent by this node.
    IntrusiveList<SendOperation, &SendOperation::hook> streaming{};
    std::unordered_map<MessageName, SendOperation*, MessageNameHash> announced{0, hash};
    /// Messages that this node withdrew, until the peer reports their outcome; nullptr: the send
    /// has ended without the answer.
    std::unordered_map<MessageName, SendOperation*, MessageNameHash> asking{0, hash};

    // Sent by the peer.
    std::unordered_map<MessageName, InMessage*, MessageNameHash> bulk_in{0, hash};
    /// Messages whose stream the peer abandoned, until it asks for their outcome.
    std::unordered_set<MessageName, MessageNameHash> given_up{0, hash};
    /// Messages that the peer withdrew before their header arrived.
    std::unordered_set<MessageName, MessageNameHash> taken_back{0, hash};
    /// Messages whose payload is not complete, in any state.
    IntrusiveList<InMessage, &InMessage::peer_hook> incomplete{};
};

/// The collectives of all communicators that this node shares with one peer.
struct PeerCollectives {
    CollectiveOnLane on_lane{};
    IntrusiveList<Pair, &Pair::collectives_hook> blocked{};
};

/// What a peer said about the members of the cluster, and what this node noticed about the peer.
struct PeerMembership {
    std::size_t waiting = 0;       // messages that poll_membership() has not returned,
    std::size_t bytes = 0;         // and their size
    std::array<bool, 4> hinted{};  // by membership::Hint: poll_hint() will return it
    /// Communicators that the peer has revoked and this side does not know, oldest first.
    std::deque<ContextId> early_revocations{};
    // What this side repeats when the peer can be reached again, because it may have been lost with
    // a link.
    std::deque<ContextId> revocations{};  // communicators that are revoked, oldest first
    std::optional<wire::NewWorld> new_world{};
    /// What this side said before the link came up, oldest first.
    std::deque<membership::Message> unsaid{};
};

/// Another node, and everything in flight to it and from it.
struct Peer {
    Peer(Transfers& all, const NodeId& id, const Amount& shared)
        : node(id), messages(shared, all.limits().hash_seed), transfers(all, *this) {}

    NodeId node;
    Identity identity{};          // from the certificate of its link
    std::optional<Rank> rank{};   // in the cluster, if a view contained it
    std::optional<Error> lost{};  // why operations with this peer fail
    bool settled = false;         // everything in flight with a lost peer has ended
    bool unreachable = false;     // `lost` is a verdict that may be taken back
    bool silent = false;          // see Engine::set_silent()
    bool stalled = false;         // its link, see port::Stalled
    std::optional<Epoch> evicted{};
    bool replaced = false;      // another record takes links of this node, see Engine::renew()
    bool goodbye = false;       // the peer said that it closes its node in good order
    std::size_t link_news = 0;  // frames about further links so far
    bool wanted = false;  // Engine::poll_wanted() reports, or has reported, that a link is needed
    std::optional<Error> farewell{};  // the peer's reason for leaving; Down will follow

    /// Memory that the peer shares, by the id of the communicator, until all ranks have agreed to
    /// use it. The link limits how much it may be.
    std::unordered_map<std::uint64_t, std::shared_ptr<const port::PeerMemory>> segments{};
    PeerBuffers buffers{};

    PeerMembership membership{};

    std::unordered_map<ContextId, std::unique_ptr<Pair>> pairs{};
    Pair* last_pair = nullptr;  // of the previous message

    PeerMessages messages;
    PeerCalls calls{};
    PeerCollectives collectives{};
    PeerTransfers transfers;  // refers to the members above while the link is up
};

}  // namespace nexar::engine
