#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/udp_fault/faults.hpp"

namespace nexar::udp_fault {

/// What became of the datagrams of one direction. Always:
/// received + duplicated == delivered + queued + dropped + burst_dropped + blackholed + oversized
/// + overflowed.
struct FaultCounters {
    std::uint64_t received = 0;
    std::uint64_t delivered = 0;      // left the impairment, copies included
    std::uint64_t queued = 0;         // wait for their time
    std::uint64_t dropped = 0;        // independent loss
    std::uint64_t burst_dropped = 0;  // loss in bursts
    std::uint64_t blackholed = 0;
    std::uint64_t oversized = 0;   // larger than the path takes
    std::uint64_t overflowed = 0;  // found the line's queue, or the impairment's memory, full
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;  // held back
    std::uint64_t corrupted = 0;
    std::uint64_t truncated = 0;
};

/// What may wait inside at once; more is lost and counted as overflowed.
struct QueueLimits {
    std::size_t packets = 65536;
    std::size_t bytes = std::size_t{64} << 20U;
};

/// One datagram under way. `flow` tells the clients apart: only datagrams of one flow are put out
/// of order by holding one back.
struct Datagram {
    std::uint64_t flow = 0;
    std::uint8_t ecn = 0;  // the two ECN bits of RFC 3168, carried through
    std::vector<std::byte> bytes{};
};

/// One direction of a bad path: takes datagrams as they come and gives those that survive, as they
/// survive, when their time has come. No I/O and no clock: `now` is a parameter and never goes
/// back. Not thread-safe.
///
/// A datagram meets, in this order: the size limit, the blackhole, the losses, truncation,
/// corruption, duplication, the line's rate and queue, delay with jitter, holding back.
class Impairment {
public:
    /// The options must pass check(). `random` decides everything that is left to chance.
    Impairment(const FaultOptions& options, const QueueLimits& limits, const Random& random);

    /// For the datagrams that come from now on; what waits keeps its time. The blackhole's time
    /// starts anew.
    void set_options(const FaultOptions& options);

    /// Swallows everything, or no longer, beside what the options say.
    void set_blackhole(bool on) noexcept { swallow_all_ = on; }

    /// Copies the bytes if they survive.
    void offer(TimePoint now, std::uint64_t flow, std::uint8_t ecn,
               std::span<const std::byte> bytes);

    /// The next datagram that is due, in the order of their times; call until there is none.
    std::optional<Datagram> poll(TimePoint now);

    /// When poll() has the next one; nothing while nothing waits.
    std::optional<TimePoint> next_deadline() const noexcept;

    const FaultCounters& counters() const noexcept { return counters_; }

private:
    struct Waiting {
        TimePoint due{};
        Datagram datagram{};
    };
    using Late = std::multimap<TimePoint, Datagram>;

    /// A datagram in late_ that `remaining` later ones of its flow still have to pass.
    struct Held {
        Late::iterator place{};
        std::uint32_t remaining = 0;
    };

    bool swallowed(TimePoint now);
    bool lost(TimePoint now, const Fate& fate, std::size_t bytes);
    Datagram altered(const Fate& fate, Datagram datagram);
    std::optional<TimePoint> passed_line(TimePoint now, std::size_t bytes);
    void enqueue(TimePoint now, const Fate& fate, Datagram datagram);
    void hold_back(TimePoint due, Datagram datagram);
    void let_overtaken_go(std::uint64_t flow, TimePoint due);
    Datagram take_late();

    FaultOptions options_;
    QueueLimits limits_;
    FateSequence fates_;
    FaultCounters counters_{};
    bool swallow_all_ = false;
    std::optional<TimePoint> first_seen_{};  // under the present options
    TimePoint line_free_at_{};
    TimePoint last_due_{};  // of in_order_
    std::size_t queued_bytes_ = 0;
    std::deque<Waiting> in_order_;  // by `due`, since nothing overtakes here
    Late late_;                     // held back; leave at their key at the latest
    std::vector<Held> held_;
};

/// "received 12, delivered 11, dropped 1": what is not zero, and always the first two.
std::string describe(const FaultCounters& counters);

}  // namespace nexar::udp_fault
