#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/cache_line.hpp"
#include "base/thread_index.hpp"
#include "base/time.hpp"

namespace nexar {

/// What happened, and what the arguments a, b, c and d of the event mean. Numbers are stable: they
/// end up in trace files. A new kind gets a new number in its group; none is used again.
///
/// An event of an operation, of a match or of a wait has in
///   a  the communicator: its number in communicator_made, modulo 2^16
///   b  a subject and a detail, see event_subject() and event_detail()
/// The subject is a rank where nothing else is said. The detail of an end is the Errc of the
/// error, or 0; that of a wait is its WaitReason; else it is 0.
enum class EventKind : std::uint16_t {
    mark = 1,  // a moment marked for debugging; the arguments mean what its author wants

    // Operations of this node: from the call of the user to the end, whatever it is.
    send_started = 16,     // subject: the receiver; c: tag; d: bytes
    send_ended = 17,       // the same
    send_waits = 18,       // the same
    receive_started = 20,  // subject: the sender, or kAnyRank; c: tag, or kAnyTag; d: room, bytes
    receive_ended = 21,    // subject, c: of the message, or as started; d: bytes received
    probe_started = 24,    // subject: the sender, or kAnyRank; c: tag, or kAnyTag; d: 0
    probe_ended = 25,      // subject, c: of the message, or as started; d: its bytes
    call_started = 28,     // subject: the callee; c: function, see below; d: bytes of the request
    call_ended = 29,       // the same, but d: bytes of the response
    call_waits = 30,       // as call_started
    collective_started = 32,  // subject: schedule::Collective; c: number of the call; d: bytes
    collective_ended = 33,    // the same
    collective_waits = 34,    // subject: the receiver of a message; c: number of the call; d: bytes
    agreement_started = 36,   // subject: wire::AgreementKind; c: 0; d: flags
    agreement_ended = 37,     // subject: the same; c: number of the agreement; d: agreed flags
    // The function of a call is its number, or the first 8 bytes of its name, the first in the
    // lowest byte.

    message_matched = 48,  // a receive got a message. subject: the sender; c: tag; d: bytes

    // The link to a peer. a: Errc of the reason, or 0; c, d: the node id, its first byte in the
    // highest byte of c
    link_up = 64,
    link_down = 65,
    link_given_up = 66,  // there was none, and there will be none

    // Communicators. a: number, in the order in which this process made them, from 0, modulo 2^16;
    // c: context
    communicator_made = 80,   // b: size; d: rank of this node
    communicator_ended = 81,  // b: size; d: rank of this node
};
inline constexpr std::array kEventKinds{EventKind::mark,
                                        EventKind::send_started,
                                        EventKind::send_ended,
                                        EventKind::send_waits,
                                        EventKind::receive_started,
                                        EventKind::receive_ended,
                                        EventKind::probe_started,
                                        EventKind::probe_ended,
                                        EventKind::call_started,
                                        EventKind::call_ended,
                                        EventKind::call_waits,
                                        EventKind::collective_started,
                                        EventKind::collective_ended,
                                        EventKind::collective_waits,
                                        EventKind::agreement_started,
                                        EventKind::agreement_ended,
                                        EventKind::message_matched,
                                        EventKind::link_up,
                                        EventKind::link_down,
                                        EventKind::link_given_up,
                                        EventKind::communicator_made,
                                        EventKind::communicator_ended};

/// The name as written in the source; "unknown" for a number that is none.
std::string_view name(EventKind kind) noexcept;

/// What an operation waits for before its peer can know of it. Numbers are stable.
enum class WaitReason : std::uint16_t {
    link = 1,    // to the peer
    credit = 2,  // of the peer
    room = 3,    // in the lane
    match = 4,   // of its message, which the peer knows of
};

/// Subjects have 20 bits, details 12. A larger rank is recorded as kAnyRank.
inline constexpr std::uint32_t kAnyRank = (std::uint32_t{1} << 20) - 1;
inline constexpr std::uint64_t kAnyTag = ~std::uint64_t{0};

constexpr std::uint32_t event_word(std::uint32_t subject, std::uint16_t detail = 0) noexcept {
    return (subject < kAnyRank ? subject : kAnyRank) | std::uint32_t{detail} << 20;
}
constexpr std::uint32_t event_subject(std::uint32_t b) noexcept {
    return b & kAnyRank;
}
constexpr std::uint16_t event_detail(std::uint32_t b) noexcept {
    return static_cast<std::uint16_t>(b >> 20);
}

/// One recorded event, as it is in the ring.
struct RecordedEvent {
    TimePoint time{};
    EventKind kind{};
    std::uint16_t a = 0;
    std::uint32_t b = 0;
    std::uint64_t c = 0;
    std::uint64_t d = 0;

    friend bool operator==(const RecordedEvent&, const RecordedEvent&) noexcept = default;
};
static_assert(sizeof(RecordedEvent) == 32);

struct RecorderOptions {
    /// Kept per thread, rounded up to a power of two; at most Recorder::kMaxEventsPerThread. 0
    /// turns recording off.
    std::size_t events_per_thread = 4096;
    /// Threads that record, at most kThreadIndexes; events of further ones are counted as dropped.
    std::size_t threads = 64;
};

/// The last events of every thread, to find out afterwards what a node did.
///
/// Each thread writes to a ring of its own, 32 bytes an event, without waiting for anyone; the ring
/// is allocated at the thread's first event. When a thread ends, its ring goes to the next new
/// thread and its events stay until that one has overwritten them. The caller gives the time.
class Recorder {
public:
    static constexpr std::size_t kMaxEventsPerThread = std::size_t{1} << 20;

    struct Entry {
        RecordedEvent event{};
        unsigned thread = 0;       // thread_index() of the thread that recorded it
        std::uint64_t number = 0;  // of the event in its thread's ring, from 0; grows without gaps
    };

    struct Snapshot {
        std::vector<Entry> events{};
        std::uint64_t overwritten = 0;  // events that newer ones of their thread have replaced
        std::uint64_t dropped = 0;      // events of threads that had no ring
    };

    /// Options beyond the limits are a bug and assert.
    explicit Recorder(const RecorderOptions& options);
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;
    ~Recorder();

    bool on() const noexcept { return capacity_ != 0; }

    /// Any thread.
    void record(const RecordedEvent& event) noexcept;

    /// The events of all threads by time, those of the same time by thread and number. Any thread;
    /// does not stop the writers, and never shows an event that was being overwritten while it was
    /// read.
    Snapshot snapshot() const;

private:
    // A RecordedEvent in words that can be written while they are read.
    struct Slot {
        std::atomic<std::uint64_t> time;
        std::atomic<std::uint64_t> small;  // kind, a and b, from the low bits
        std::atomic<std::uint64_t> c;
        std::atomic<std::uint64_t> d;
    };
    static_assert(sizeof(Slot) == 32);

    struct alignas(kCacheLine) Ring {
        // Events whose writing has begun, and has ended. Number n lies in slots[n % capacity].
        std::atomic<std::uint64_t> begun{0};
        std::atomic<std::uint64_t> ended{0};
        std::unique_ptr<Slot[]> slots;
    };

    // Null when there is no memory for it.
    Ring* new_ring(unsigned thread) noexcept;
    void drop() noexcept;
    static RecordedEvent load(const Slot& slot) noexcept;
    void read(const Ring& ring, unsigned thread, Snapshot& into) const;

    const std::size_t capacity_;  // of each ring; a power of two, or 0 when recording is off
    const std::size_t threads_;   // 0 when recording is off
    const std::unique_ptr<std::atomic<Ring*>[]> rings_;
    std::atomic<std::uint64_t> dropped_{0};
};

// Inline and word by word, so that the event is put together in registers: loading a word that was
// just stored in pieces stalls the CPU for longer than all the rest takes.
//
// A reader must notice that a slot changed while it was read, and the event has no room for a
// number of its own. So the words are stored with release and loaded with acquire: a reader that
// loads a word of event n sees begun > n afterwards, and knows that event n - capacity is gone.
inline void Recorder::record(const RecordedEvent& event) noexcept {
    const unsigned thread = thread_index();
    if (thread >= threads_) [[unlikely]] {
        drop();
        return;
    }
    Ring* ring = rings_[thread].load(std::memory_order_relaxed);
    if (ring == nullptr) [[unlikely]] {
        ring = new_ring(thread);
        if (ring == nullptr) {
            drop();
            return;
        }
    }
    const std::uint64_t number = ring->ended.load(std::memory_order_relaxed);
    ring->begun.store(number + 1, std::memory_order_relaxed);
    auto& [time, small, c, d] = ring->slots[number & (capacity_ - 1)];
    time.store(static_cast<std::uint64_t>(event.time.time_since_epoch().count()),
               std::memory_order_release);
    small.store(static_cast<std::uint64_t>(event.kind) | std::uint64_t{event.a} << 16 |
                    std::uint64_t{event.b} << 32,
                std::memory_order_release);
    c.store(event.c, std::memory_order_release);
    d.store(event.d, std::memory_order_release);
    ring->ended.store(number + 1, std::memory_order_release);
}

}  // namespace nexar
