#include "base/recorder.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <tuple>

#include "base/assert.hpp"

namespace nexar {

namespace {

std::size_t ring_capacity(std::size_t events_per_thread) {
    NEXAR_ASSERT(events_per_thread <= Recorder::kMaxEventsPerThread,
                 "a recorder keeps at most 2^20 events per thread");
    return events_per_thread == 0 ? 0 : std::bit_ceil(events_per_thread);
}

std::size_t ring_count(const RecorderOptions& options) {
    NEXAR_ASSERT(options.threads <= kThreadIndexes, "a recorder has at most kThreadIndexes rings");
    return options.events_per_thread == 0 ? 0 : options.threads;
}

}  // namespace

std::string_view name(EventKind kind) noexcept {
    switch (kind) {
        case EventKind::mark:
            return "mark";
        case EventKind::send_started:
            return "send_started";
        case EventKind::send_ended:
            return "send_ended";
        case EventKind::send_waits:
            return "send_waits";
        case EventKind::receive_started:
            return "receive_started";
        case EventKind::receive_ended:
            return "receive_ended";
        case EventKind::probe_started:
            return "probe_started";
        case EventKind::probe_ended:
            return "probe_ended";
        case EventKind::call_started:
            return "call_started";
        case EventKind::call_ended:
            return "call_ended";
        case EventKind::call_waits:
            return "call_waits";
        case EventKind::collective_started:
            return "collective_started";
        case EventKind::collective_ended:
            return "collective_ended";
        case EventKind::collective_waits:
            return "collective_waits";
        case EventKind::agreement_started:
            return "agreement_started";
        case EventKind::agreement_ended:
            return "agreement_ended";
        case EventKind::message_matched:
            return "message_matched";
        case EventKind::link_up:
            return "link_up";
        case EventKind::link_down:
            return "link_down";
        case EventKind::link_given_up:
            return "link_given_up";
        case EventKind::communicator_made:
            return "communicator_made";
        case EventKind::communicator_ended:
            return "communicator_ended";
    }
    return "unknown";
}

Recorder::Recorder(const RecorderOptions& options)
    : capacity_(ring_capacity(options.events_per_thread)),
      threads_(ring_count(options)),
      rings_(std::make_unique<std::atomic<Ring*>[]>(threads_)) {}

Recorder::~Recorder() {
    for (std::size_t i = 0; i < threads_; ++i) delete rings_[i].load(std::memory_order_acquire);
}

Recorder::Ring* Recorder::new_ring(unsigned thread) noexcept {
    std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
    if (!ring) return nullptr;
    ring->slots.reset(new (std::nothrow) Slot[capacity_]());
    if (!ring->slots) return nullptr;
    // Nobody else sets this pointer: the number belongs to this thread.
    rings_[thread].store(ring.get(), std::memory_order_release);
    return ring.release();
}

void Recorder::drop() noexcept {
    if (on()) dropped_.fetch_add(1, std::memory_order_relaxed);
}

RecordedEvent Recorder::load(const Slot& slot) noexcept {
    const std::uint64_t time = slot.time.load(std::memory_order_acquire);
    const std::uint64_t small = slot.small.load(std::memory_order_acquire);
    return {.time = TimePoint(Duration(static_cast<std::int64_t>(time))),
            .kind = static_cast<EventKind>(small & 0xffffU),
            .a = static_cast<std::uint16_t>(small >> 16 & 0xffffU),
            .b = static_cast<std::uint32_t>(small >> 32),
            .c = slot.c.load(std::memory_order_acquire),
            .d = slot.d.load(std::memory_order_acquire)};
}

void Recorder::read(const Ring& ring, unsigned thread, Snapshot& into) const {
    const std::uint64_t end = ring.ended.load(std::memory_order_acquire);
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, capacity_);
    const std::size_t before = into.events.size();
    into.events.reserve(before + static_cast<std::size_t>(end - begin));
    for (std::uint64_t number = begin; number < end; ++number) {
        into.events.push_back({.event = load(ring.slots[number & (capacity_ - 1)]),
                               .thread = thread,
                               .number = number});
    }
    const std::uint64_t begun = ring.begun.load(std::memory_order_relaxed);
    const std::uint64_t intact = begun - std::min<std::uint64_t>(begun, capacity_);
    const std::uint64_t torn = std::clamp(intact, begin, end) - begin;
    const auto first = into.events.begin() + static_cast<std::ptrdiff_t>(before);
    into.events.erase(first, first + static_cast<std::ptrdiff_t>(torn));
    into.overwritten += begin + torn;
}

Recorder::Snapshot Recorder::snapshot() const {
    Snapshot result;
    for (unsigned thread = 0; thread < threads_; ++thread) {
        const Ring* const ring = rings_[thread].load(std::memory_order_acquire);
        if (ring != nullptr) read(*ring, thread, result);
    }
    std::ranges::sort(result.events, {},
                      [](const Entry& r) { return std::tuple(r.event.time, r.thread, r.number); });
    result.dropped = dropped_.load(std::memory_order_relaxed);
    return result;
}

}  // namespace nexar
