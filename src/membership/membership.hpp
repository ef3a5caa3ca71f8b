#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "wire/messages.hpp"

/// Which nodes are members of the cluster: detects failures and agrees on views. docs/membership.md
/// describes the protocol and why it is safe.
namespace nexar::membership {

/// A message between two nodes; the transport authenticates the sender.
using Message = std::variant<wire::Heartbeat, wire::Suspicion, wire::Ballot, wire::ViewFrame>;

struct Outgoing {
    NodeId to{};
    Message message{};  // a heartbeat travels as a datagram, everything else on a lane
};

/// Evidence about a node that arrived otherwise than by a message of this protocol.
enum class Hint : std::uint8_t {
    doubtful,   // a packet to it was refused, or its link broke: probe it at once
    gone,       // this host knows that its process has ended
    left,       // it closed its link in good order: it leaves the cluster
    connected,  // a link to it came up: it has started
};

// Events.

/// The voters decided on this view. Each event of this kind has a higher epoch than the one before,
/// but epochs may be skipped.
struct Decided {
    View view{};
    std::vector<Rank> joined{};
    std::vector<Rank> left{};  // in good order
    std::vector<Rank> lost{};  // the others that are no longer in the view
};
/// A decided view no longer contains this node; it is the last event.
struct Evicted {
    View view{};
};
/// This node cannot reach a majority of the voters (true), or can again (false).
struct Minority {
    bool minority = false;
};
/// This node cannot reach a member that others hear (true), or can again (false). A view without
/// the member ends it too.
struct Unreachable {
    NodeId node{};
    bool unreachable = false;
};
/// This node gave up waiting for a member to answer (true), or hears from it again (false). Other
/// nodes may or may not hear it.
struct Silent {
    NodeId node{};
    bool silent = false;
};
using Event = std::variant<Decided, Evicted, Minority, Unreachable, Silent>;

/// The neighbours of a member in a view, in any order. Every node must get the same answer for the
/// same view, and if a member is a neighbour of another one, so must be the other of the first.
using NeighboursOf = std::function<std::vector<NodeId>(const View& view, const NodeId& member)>;

struct Options {
    /// How long a node may be silent until its failure is certain; every other time follows from
    /// it. Zero: nobody is suspected because of silence, only because of hints.
    Duration budget = std::chrono::milliseconds(500);
    /// Seeds never suspect anyone; they vote, and they propose members that join.
    bool seed = false;
    /// Chooses probe order and pauses between ballots.
    std::uint64_t random_seed = 1;
    /// Of a sparse topology, in which only neighbours are connected and all others need relays.
    /// Neighbours watch each other, and a member is evicted only if its neighbours do not hear it.
    /// Called for every member whenever this node adopts a view, and never otherwise. Seeds do not
    /// need it. Empty: all members are connected, and each watches up to eight others.
    NeighboursOf neighbours{};
};

/// The part of a voter's state that a witness must keep on disk.
struct Vote {
    View view{};                          // the last one that this node knows
    wire::BallotNumber promised{};        // for the view after it
    wire::BallotNumber accepted{};        // all zero: it has not voted
    std::optional<View> accepted_view{};  // what it voted for

    friend bool operator==(const Vote&, const Vote&) = default;
};

/// The membership of one node: member, or seed. Sans-I/O: it never reads a clock, blocks or calls
/// back, and it is deterministic. Its owner passes messages and hints in, and polls messages and
/// events.
class Membership {
public:
    /// A node that knows a view that contains it, or a seed with what it kept on disk.
    Membership(TimePoint now, const Identity& self, const Vote& known, const Options& options);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    /// A message from a node whose certificate says `from`. Ignores messages from nodes that are
    /// not members, the witness or seeds; `from_seed` is what the certificate says.
    void handle(TimePoint now, const Identity& from, bool from_seed, const Message& message);
    void hint(TimePoint now, const NodeId& node, Hint hint);

    /// Proposes to add members; for seeds. Rank and incarnation are set by the view. A joiner that
    /// is in a decided view, or whose token the decided views have spent, is dropped from the list.
    /// `limits` says how often a token may be used; once, if it is not listed. The list replaces
    /// that of the last call: a joiner that is missing is withdrawn, unless a ballot has it
    /// already.
    void propose_members(TimePoint now, std::vector<Member> joiners,
                         const std::vector<SpentToken>& limits = {});
    /// Proposes a joiner no longer, because it went away; a ballot that has begun may still add it.
    void withdraw_member(const NodeId& node);
    /// Proposes another witness, for seeds and members.
    void propose_witness(TimePoint now, const Witness& witness);
    /// Proposes a view without this node.
    void leave(TimePoint now);

    /// Runs timers.
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    const View& view() const;
    /// True if this node hears from the other one.
    bool hears(const NodeId& node) const;

    /// While the result is not empty, poll_outgoing() returns nothing: a witness must write it to
    /// disk first and then call kept(). Members call only kept().
    std::optional<Vote> unkept() const;
    void kept();

    std::optional<Outgoing> poll_outgoing();
    std::optional<Event> poll_event();

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace nexar::membership
