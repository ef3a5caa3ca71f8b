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

/// Counts what happened to the datagrams of one direction. Always: received + duplicated ==
/// delivered + queued + dropped + burst_dropped + blackholed + oversized + overflowed.
struct FaultCounters {
    std::uint64_t received = 0;
    std::uint64_t delivered = 0;      // left the impairment, including duplicates
    std::uint64_t queued = 0;         // waiting for their time
    std::uint64_t dropped = 0;        // independent loss
    std::uint64_t burst_dropped = 0;  // loss in bursts
    std::uint64_t blackholed = 0;
    std::uint64_t oversized = 0;   // larger than the path allows
    std::uint64_t overflowed = 0;  // the line's queue or the impairment's memory was full
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;  // held back
    std::uint64_t corrupted = 0;
    std::uint64_t truncated = 0;
};

/// How much may wait inside at once; the excess is lost and counted as overflowed.
struct QueueLimits {
    std::size_t packets = 65536;
    std::size_t bytes = std::size_t{64} << 20U;
};

/// One datagram in flight. `flow` identifies the client: a datagram that is held back is overtaken
/// only by others of its flow.
struct Datagram {
    std::uint64_t flow = 0;
    std::uint8_t ecn = 0;  // the two ECN bits of RFC 3168, carried through
    std::vector<std::byte> bytes{};
};

/// One direction of an impaired path: accepts datagrams and returns the survivors, possibly
/// altered, when they are due. No I/O and no clock: `now` is a parameter and never goes back. Not
/// thread-safe.
///
/// A datagram passes, in this order: the size limit, the blackhole, the losses, truncation,
/// corruption, duplication, the line's rate and queue, delay with jitter, holding back.
class Impairment {
public:
    /// The options must pass check(). `random` makes all random decisions.
    Impairment(const FaultOptions& options, const QueueLimits& limits, const Random& random);

    /// Applies to datagrams that arrive from now on; waiting ones keep their time. The blackhole's
    /// time starts again.
    void set_options(const FaultOptions& options);

    /// Starts or stops dropping everything, in addition to the options.
    void set_blackhole(bool on) noexcept { swallow_all_ = on; }

    /// Copies the bytes if they survive.
    void offer(TimePoint now, std::uint64_t flow, std::uint8_t ecn,
               std::span<const std::byte> bytes);

    /// The next due datagram, in order of time; call until there is none.
    std::optional<Datagram> poll(TimePoint now);

    /// When poll() will return the next one; nullopt while nothing waits.
    std::optional<TimePoint> next_deadline() const noexcept;

    const FaultCounters& counters() const noexcept { return counters_; }

private:
    struct Waiting {
        TimePoint due{};
        Datagram datagram{};
    };
    using Late = std::multimap<TimePoint, Datagram>;

    /// A datagram in late_ that `remaining` later ones of its flow still have to overtake.
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
    std::optional<TimePoint> first_seen_{};  // under the current options
    TimePoint line_free_at_{};
    TimePoint last_due_{};  // of in_order_
    std::size_t queued_bytes_ = 0;
    std::deque<Waiting> in_order_;  // by `due`, since nothing overtakes here
    Late late_;                     // held back; the key is the latest time to leave
    std::vector<Held> held_;
};

/// "received 12, delivered 11, dropped 1": the first two, and all others that are not zero.
std::string describe(const FaultCounters& counters);

}  // namespace nexar::udp_fault
