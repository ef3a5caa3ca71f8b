#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "base/types.hpp"
#include "routing/parts.hpp"
#include "routing/relay_queue.hpp"
#include "wire/plain_envelope.hpp"

namespace nexar::routing {

/// The links that an envelope may cross unless the owner sets another number: with 16384 members of
/// degree 4 the widest topology needs about 16.
inline constexpr std::uint8_t kDefaultHops = 16;

/// The table by which a node forwards.
class NextHops {
public:
    virtual ~NextHops() = default;

    /// The neighbour that comes next on the way to `target`, or nullopt if none except `not_to`
    /// leads there. `choice` selects one of several ways.
    virtual std::optional<Rank> next_hop(Rank target, std::uint16_t choice,
                                         std::optional<Rank> not_to) = 0;
};

/// The links of this node to its neighbours.
class Outlets {
public:
    virtual ~Outlets() = default;

    /// port::Link::max_datagram() of the link to this neighbour; 0 if it has none.
    virtual std::size_t max_datagram(Rank neighbour) const = 0;
};

/// The view of this node.
class Roster {
public:
    virtual ~Roster() = default;

    virtual bool is_member(Rank rank) const = 0;
};

struct RelayOptions {
    /// The links that an envelope may cross, from 1 to wire::kMaxHops; the same on all members.
    std::uint8_t max_hops = kDefaultHops;
    /// The budget of each pair for what this node forwards.
    std::uint64_t pair_bytes_per_second = 4'000'000'000;
    /// How many pairs may have used some of their budget at the same moment; others must wait.
    std::size_t paced_pairs = 4096;
    /// The budget of each neighbour for what it sends to this node.
    std::uint64_t neighbour_packets_per_second = 1'000'000;
    /// How much of a budget may be used at once.
    Duration burst = std::chrono::milliseconds(10);
    /// Charges of packets that wait for poll_arrived(), see RelayQueue::charge().
    std::size_t arrived_bytes = std::size_t{2} << 20U;
    RelayLimits queue{};
    PartsLimits parts{};
    std::uint64_t hash_seed = 0;
};

/// What a node did with an envelope.
enum class Outcome : std::uint8_t {
    sent,        // a packet of this node waits for its first link
    forwarded,   // waits for the next link
    delivered,   // poll_arrived() returns the packet
    incomplete,  // a part that waits for the other one, or that is useless

    // Dropped, as in any network; members may have different views and tables for a moment.
    unknown_member,
    returned,     // this node is its source
    hops_spent,   // before it reached its target
    no_route,     // except back to the neighbour from which it came
    too_large,    // for the next link
    over_budget,  // of its pair
    too_fast,     // more packets than the neighbour may send
    queue_full,

    // Dropped, because the neighbour from which it came has broken the rules: an honest node
    // neither sends nor forwards such an envelope.
    malformed,
    too_many_hops,
    forged_source,
};
inline constexpr std::size_t kOutcomes = static_cast<std::size_t>(Outcome::forged_source) + 1;

/// In words, for error messages.
std::string_view name(Outcome outcome) noexcept;

constexpr bool is_violation(Outcome outcome) noexcept {
    return outcome >= Outcome::malformed;
}
constexpr bool is_drop(Outcome outcome) noexcept {
    return outcome >= Outcome::unknown_member && outcome <= Outcome::queue_full;
}

/// A rate limit: a token bucket stored as one point in time, until which everything admitted so far
/// keeps it busy (the "virtual scheduling algorithm" of ITU-T I.371).
class Pace {
public:
    /// Admits if it is busy for at most `burst`. So one packet may always pass an idle limit,
    /// however large the packet is.
    bool admit(TimePoint now, Duration cost, Duration burst) noexcept {
        if (busy_until_ > now + burst) return false;
        busy_until_ = std::max(busy_until_, now) + cost;
        return true;
    }
    /// True if it is in the same state as a new one.
    bool idle(TimePoint now) const noexcept { return busy_until_ <= now; }

private:
    TimePoint busy_until_ = TimePoint::min();
};

/// A rate limit per pair. A pair takes memory only while its limit is busy.
class PairPaces {
public:
    PairPaces(std::size_t capacity, std::uint64_t hash_seed);

    /// Does not admit a pair beyond `capacity`.
    bool admit(TimePoint now, const Pair& pair, Duration cost, Duration burst);

    std::size_t pairs() const noexcept { return paces_.size(); }

private:
    void free_idle(TimePoint now);

    const std::size_t capacity_;
    std::unordered_map<Pair, Pace, PairHash> paces_;
    std::deque<Pair> turns_{};  // of free_idle(): the keys of paces_
};

/// A packet of a tunnel that ends at this node.
struct ArrivedPacket {
    Rank source{};
    std::uint16_t choice = 0;  // of its envelope
    std::vector<std::byte> memory{};
    std::size_t offset = 0;  // of the packet in its memory
    std::size_t bytes = 0;   // of the packet

    std::span<const std::byte> packet() const { return std::span(memory).subspan(offset, bytes); }
};

/// Forwards the packets of tunnels, which travel in envelopes in the datagrams of links.
///
/// A tunnel is an end-to-end QUIC connection of two members without a link of their own. A relay
/// can neither read nor forge its packets, and keeps nothing about a tunnel: only the datagrams
/// that wait for a link, the part of its budget that a pair has just used, and parts of packets for
/// this node. All of it is bounded and expires.
///
/// The owner passes every envelope that arrives to arrived(), with the rank that the certificate of
/// the link proves. It calls poll() only while the link takes datagrams and has none of its own to
/// send, so that a saturated tunnel never delays a heartbeat. A violation is the fault of the
/// neighbour from which the envelope came; the owner decides what follows. The source of an
/// envelope can be verified only on its first link. A later relay can invent one, but the target
/// then only gets a packet that its connection discards.
///
/// `now` never goes back.
class Relay {
public:
    /// The references must outlive the relay.
    Relay(Rank self, NextHops& next_hops, const Outlets& outlets, const Roster& roster,
          const RelayOptions& options = {});

    /// Sends a packet of one of this node's tunnels; copies it. A packet of at most kMaxSplitBytes
    /// that is too large for the first link travels in two parts. A larger one is dropped, which
    /// the path MTU discovery of its connection notices.
    Outcome send(TimePoint now, Rank target, std::uint16_t choice,
                 std::span<const std::byte> packet);

    /// Takes an envelope from a neighbour. Keeps its memory instead of copying it, unless it must
    /// be split or is itself a part.
    Outcome arrived(TimePoint now, Rank from, std::vector<std::byte> datagram);

    /// The next packet for this node.
    std::optional<ArrivedPacket> poll_arrived();

    /// The next datagram for the link to this neighbour.
    std::optional<std::vector<std::byte>> poll(TimePoint now, Rank neighbour);
    /// The neighbours for which datagrams wait, ascending.
    std::vector<Rank> neighbours_with_work() const;

    /// Drops what waits for a neighbour whose link has ended.
    void disconnected(Rank neighbour);

    /// Drops what is too old.
    void expire(TimePoint now);
    /// When expire() has something to do.
    std::optional<TimePoint> next_deadline() const;

    std::uint64_t count(Outcome outcome) const noexcept {
        return counts_[static_cast<std::size_t>(outcome)];
    }
    /// Of all queues, including those of links that have ended.
    RelayQueueCounts queue_counts() const;
    /// Datagrams that waited for a link when it ended; no other counter has them.
    std::uint64_t disconnected_datagrams() const noexcept { return disconnected_; }
    const PartsCounts& parts_counts() const noexcept { return parts_.counts(); }
    /// nullptr if nothing has been sent to the neighbour yet.
    const RelayQueue* queue(Rank neighbour) const;
    /// Pairs that have just used some of their budget.
    std::size_t paced_pairs() const noexcept { return pair_paces_.pairs(); }

private:
    struct Neighbour {
        Neighbour(const RelayLimits& limits, std::uint64_t hash_seed) : queue(limits, hash_seed) {}

        Pace pace{};
        RelayQueue queue;
    };
    using View = wire::EnvelopeView;

    Outcome counted(Outcome outcome) noexcept;
    Outcome take(TimePoint now, Rank from, std::vector<std::byte>&& datagram);
    std::optional<Outcome> violation(Rank from, const View& view) const;
    Outcome deliver(TimePoint now, const View& view, std::vector<std::byte>&& datagram);
    Outcome forward(TimePoint now, Rank from, const View& view, std::vector<std::byte>&& datagram);
    std::optional<Rank> next_hop(Rank target, std::uint16_t choice, std::optional<Rank> not_to);
    bool push(TimePoint now, Rank next, const Pair& pair, std::vector<std::byte>&& datagram);
    bool split_fits(std::size_t packet_bytes, Rank next) const;
    bool push_parts(TimePoint now, Rank next, wire::Envelope envelope,
                    std::span<const std::byte> packet);
    Neighbour& neighbour(Rank rank);

    const Rank self_;
    NextHops& next_hops_;
    const Outlets& outlets_;
    const Roster& roster_;
    const RelayOptions options_;
    std::map<Rank, Neighbour> neighbours_{};
    PairPaces pair_paces_;
    Parts parts_;
    std::deque<ArrivedPacket> arrived_{};
    std::size_t arrived_bytes_ = 0;
    std::uint32_t number_ = 0;  // of the last packet that this node sent
    std::array<std::uint64_t, kOutcomes> counts_{};
    RelayQueueCounts ended_{};  // of links that have ended
    std::uint64_t disconnected_ = 0;
};

}  // namespace nexar::routing
