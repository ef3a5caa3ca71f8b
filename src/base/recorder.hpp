#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.hpp"
#include "base/thread_index.hpp"
#include "base/time.hpp"

namespace nexar {

/// What happened. A kind enters with the code that records it and says what its arguments mean.
/// Numbers are stable: they end up in trace files.
enum class EventKind : std::uint16_t {
    mark = 1,  // a moment that whoever looks for a problem marked; the arguments are theirs
};

/// One thing that happened, as it lies in the ring.
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

/// The last events of every thread, for finding out afterwards what a node did.
///
/// Each thread writes to a ring of its own, 32 bytes an event, without waiting for anyone; the ring
/// is allocated at the thread's first event. When a thread ends, its ring goes to the next new
/// thread and its events stay until that one has overwritten them. The caller gives the time.
class Recorder {
public:
    static constexpr std::size_t kMaxEventsPerThread = std::size_t{1} << 20;

    struct Entry {
        RecordedEvent event{};
        unsigned thread = 0;       // thread_index() of who recorded it
        std::uint64_t number = 0;  // of the event in its thread's ring, from 0; grows without gaps
    };

    struct Snapshot {
        std::vector<Entry> events{};
        std::uint64_t overwritten = 0;  // events that newer ones of their thread have replaced
        std::uint64_t dropped = 0;      // events of threads for which there was no ring
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
    // An RecordedEvent in words that can be written while they are read.
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
// A reader must notice that a slot changed under its eyes, and the event has no room for a number
// of its own. So the words are stored with release and loaded with acquire: whoever loads a word of
// event n sees begun > n afterwards, and knows that event n - capacity is gone.
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
