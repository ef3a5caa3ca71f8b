#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
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
        unsigned refused = 0;   // packets, since the probe began
        TimePoint heard{};
        TimePoint since{};  // when it became a peer
        std::uint64_t heard_number = 0;
        std::uint64_t counter = 0;
        Duration echo{};  // of its last heartbeat
        TimePoint shown{};
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
    View view_{};
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
