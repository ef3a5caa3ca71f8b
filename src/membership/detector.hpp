#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "membership/connections.hpp"
#include "membership/membership.hpp"
#include "membership/proposal.hpp"
#include "wire/messages.hpp"

namespace nexar::membership {

/// The times of the protocol, all derived from the budget.
struct Timing {
    explicit Timing(Duration budget)
        : silence(budget > Duration::zero()),
          whole(silence ? budget : Duration(std::chrono::milliseconds(500))) {}

    bool silence;    // false: silence proves nothing
    Duration whole;  // the budget, or its default if it is off

    Duration heartbeat() const { return whole / 5; }
    Duration probe() const { return whole / 25; }
    Duration quiet() const { return whole * 3 / 5; }  // until an observer becomes suspicious
    Duration patience() const { return whole * 2 / 5; }
    Duration refused_patience() const { return whole / 10; }
    Duration late() const { return whole / 20; }
    Duration step() const { return whole / 10; }  // between proposers
};

/// Detects which peers a node reaches: sends heartbeats, probes silent peers, and compares its
/// result with that of the others.
///
/// What it costs in a view of n members, with k neighbours each (k = 8 and no relays in a full
/// mesh). Without failures: k heartbeats per B/5 and node. In a full mesh, a node that finds a
/// member unreachable asks all others for a sign of life, which takes n^2 messages in the cluster.
/// In a sparse topology each would open a tunnel, so a node probes only
///
/// - its neighbours,
/// - a member that a neighbour of that member accuses: n tunnels to it, without which no majority
///   could know whether to vote for its eviction,
/// - the members that no path leads to except through unreachable ones. After the death of a relay
///   there are none unless it was the only way; after a partition they are the other side, and a
///   node must try to reach them before it says that it is in a minority.
///
/// A neighbour of a member tells all others that it accuses it. The others tell only those who
/// count accusations: k (n - 1) + n (k + 5) messages instead of n^2.
class Detector {
public:
    Detector(TimePoint now, const Identity& self, const Options& options);

    void adopt(TimePoint now, const View& view);

    void heartbeat(TimePoint now, const Identity& from, const wire::Heartbeat& message);
    void suspicion(TimePoint now, const NodeId& from, const wire::Suspicion& message);
    void hint(TimePoint now, const NodeId& node, Hint hint);
    /// Probes a peer that somebody wants to evict; see opinion().
    void probe(TimePoint now, const NodeId& node);

    /// Compares the clock with the deadline that this detector asked for. First of all in every
    /// call.
    void check_clock(TimePoint now);
    void turn(TimePoint now);
    TimePoint deadline() const { return deadline_; }

    enum class Opinion : std::uint8_t { reachable, probing, unreachable };
    Opinion opinion(const NodeId& node) const;
    /// The opinion by which this node votes for or against an eviction: it is `unreachable` only if
    /// the neighbours of the peer, in a sparse topology, do not contradict.
    Opinion verdict(const NodeId& node, TimePoint now) const;
    /// False if this node needs relays to reach a peer, in a sparse topology.
    bool near(const NodeId& node) const;
    bool hears(const NodeId& node) const;
    /// When this node last heard from a peer, or became its peer.
    TimePoint heard_at(const NodeId& node) const;
    bool left(const NodeId& node) const;
    /// The members that failed beyond doubt, as far as this node can tell.
    std::vector<NodeId> failed(TimePoint now) const;
    std::vector<NodeId> departed() const;
    /// True if this node cannot reach a majority of the voters.
    bool minority() const { return minority_; }

    /// Asks a peer for its newest view, by showing it the epoch of this node.
    void show_epoch(TimePoint now, const NodeId& node);

    std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
    std::vector<Event> take_events() { return std::exchange(events_, {}); }
    bool idle() const { return outgoing_.empty() && events_.empty(); }

private:
    struct Accuser {
        NodeId node{};
        std::uint64_t counter = 0;
        TimePoint at{};
    };
    struct Hearer {
        NodeId node{};
        TimePoint at{};
    };
    struct Peer {
        NodeId node{};
        Incarnation incarnation{};
        bool witness = false;
        bool observed = false;  // it sends heartbeats to this node
        bool target = false;    // this node sends heartbeats to it
        bool ever_heard = false;
        bool gone = false;
        bool left = false;
        bool unreachable = false;
        bool reported = false;  // as Unreachable
        bool cut_off = false;   // no path to it, while `alarm_`; in a sparse topology
        unsigned refused = 0;   // packets, since the probe began
        TimePoint heard{};
        TimePoint since{};  // when it became a peer
        std::uint64_t heard_number = 0;
        std::uint64_t counter = 0;
        Duration echo{};  // of its last heartbeat
        TimePoint shown{};
        Connections::Position position{};  // in the view, except for the witness
        /// When it got new neighbours, since the probe began.
        std::optional<TimePoint> reconnecting{};
        std::optional<TimePoint> probing{};
        TimePoint next_probe{};
        std::optional<TimePoint> asked{};  // when this node asked the others
        TimePoint next_question{};
        std::vector<NodeId> askers{};
        std::vector<Accuser> accusers{};
        std::vector<Hearer> hearers{};
    };

    Peer* find(const NodeId& node);
    const Peer* find(const NodeId& node) const;
    void place(std::vector<Peer>& peers, const View& view);
    void shift(TimePoint now, Duration by);
    Duration patience(const Peer& peer) const;
    int start_factor(const Peer& peer) const;
    bool watched(const Peer& peer) const;
    bool confirmed(const Peer& peer, TimePoint now) const;
    bool agreed(const Peer& peer, TimePoint now) const;
    static void answer_later(Peer& peer, const NodeId& asker);

    // Sparse topologies.
    bool sparse() const;
    void connect(TimePoint now, std::vector<Peer>& peers, const View& view);
    bool has_new_neighbours(Connections::Position before, const View& view,
                            const Connections& connections, Connections::Position after) const;
    const Peer* member_at(Connections::Position position) const;
    static bool has_a_say(const Peer& neighbour);
    static bool accuses(const Peer& accuser, const Peer& peer);
    bool abandoned(const Peer& peer, TimePoint now) const;
    bool accused_by_neighbours(const Peer& peer) const;
    bool concerned(const Peer& recipient, const Peer& about, wire::SuspicionStep step) const;
    bool refutable(const Peer& peer, const NodeId& accuser, TimePoint now) const;
    void forget_accusations(TimePoint now);
    void find_cut_off();
    void answer_about_leaver(TimePoint now, Peer& peer);

    void start_probe(TimePoint now, Peer& peer);
    void ask(TimePoint now, Peer& peer);
    void heard(TimePoint now, Peer& peer);
    void refute(TimePoint now, const NodeId& accuser, std::uint64_t counter);
    void send_heartbeat(TimePoint now, Peer& peer, bool wants_answer);
    void tell(const Peer& about, wire::SuspicionStep step, const NodeId& to);
    void tell_all(const Peer& about, wire::SuspicionStep step);
    void look_at(TimePoint now, Peer& peer);
    void give_up(TimePoint now, Peer& peer);
    void count_voters();
    void schedule(TimePoint now);

    Identity self_;
    bool seed_;
    Timing timing_;
    NeighboursOf neighbours_of_;
    View view_{};
    Connections connections_{};      // of view_; unknown in a full mesh and at seeds
    Connections::Position own_ = 0;  // in view_, if `connections_` are known
    std::vector<Peer> peers_{};  // the other members in the order of their ranks, then the witness
    std::uint64_t counter_ = 0;
    /// Of the last heartbeat to any peer. A seed that becomes the witness again, or has another
    /// incarnation in the view, is a new peer, but it remembers the numbers that it has seen.
    std::uint64_t sent_number_ = 0;
    bool alarm_ = false;  // some peer is unreachable: watch all of them
    bool minority_ = false;
    bool informs_witness_ = false;
    double stretch_ = 1;  // of all timeouts, because this node is late itself
    TimePoint last_turn_{};
    TimePoint next_heartbeat_{};
    TimePoint deadline_{};
    std::vector<Outgoing> outgoing_{};
    std::vector<Event> events_{};
};

}  // namespace nexar::membership
