#include "support/udp_fault/impairment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/assert.hpp"

namespace nexar::udp_fault {

namespace {

// Each arrival visits all datagrams held back by a packet count; this limits their number.
constexpr std::size_t kMostHeld = 256;

Duration time_on_line(std::uint64_t bytes, std::uint64_t bytes_per_second) noexcept {
    constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
    return Duration(static_cast<Duration::rep>(bytes * kNanosecondsPerSecond / bytes_per_second));
}

void flip(std::span<std::byte> bytes, std::uint32_t bit) noexcept {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

struct Named {
    std::string_view name;
    std::uint64_t FaultCounters::* counter;
};

constexpr std::array<Named, 12> kNamed = {{
    {"received", &FaultCounters::received},
    {"delivered", &FaultCounters::delivered},
    {"queued", &FaultCounters::queued},
    {"dropped", &FaultCounters::dropped},
    {"burst dropped", &FaultCounters::burst_dropped},
    {"blackholed", &FaultCounters::blackholed},
    {"oversized", &FaultCounters::oversized},
    {"overflowed", &FaultCounters::overflowed},
    {"duplicated", &FaultCounters::duplicated},
    {"reordered", &FaultCounters::reordered},
    {"corrupted", &FaultCounters::corrupted},
    {"truncated", &FaultCounters::truncated},
}};
static_assert(sizeof(FaultCounters) == kNamed.size() * sizeof(std::uint64_t));

}  // namespace

Impairment::Impairment(const FaultOptions& options, const QueueLimits& limits, const Random& random)
    : options_(options), limits_(limits), fates_(options, random) {}

void Impairment::set_options(const FaultOptions& options) {
    fates_.set_options(options);
    options_ = options;
    first_seen_.reset();
}

void Impairment::offer(TimePoint now, std::uint64_t flow, std::uint8_t ecn,
                       std::span<const std::byte> bytes) {
    ++counters_.received;
    // Drawn even for datagrams lost to time: the n-th datagram has the n-th fate, whatever the
    // clock does.
    const Fate fate = fates_.next(bytes.size());
    if (lost(now, fate, bytes.size())) return;
    Datagram datagram{.flow = flow, .ecn = ecn, .bytes = {bytes.begin(), bytes.end()}};
    datagram = altered(fate, std::move(datagram));
    if (fate.duplicated) {
        ++counters_.duplicated;
        Fate of_copy = fate;
        of_copy.held_back = false;
        enqueue(now, fate, datagram);
        enqueue(now, of_copy, std::move(datagram));
    } else {
        enqueue(now, fate, std::move(datagram));
    }
}

bool Impairment::swallowed(TimePoint now) {
    if (!first_seen_) first_seen_ = now;
    return swallow_all_ || swallows(options_.blackhole, now - *first_seen_);
}

bool Impairment::lost(TimePoint now, const Fate& fate, std::size_t bytes) {
    const bool in_blackhole = swallowed(now);
    if (options_.largest > 0 && bytes > options_.largest) {
        ++counters_.oversized;
    } else if (in_blackhole) {
        ++counters_.blackholed;
    } else if (fate.dropped) {
        ++counters_.dropped;
    } else if (fate.burst_dropped) {
        ++counters_.burst_dropped;
    } else {
        return false;
    }
    return true;
}

Datagram Impairment::altered(const Fate& fate, Datagram datagram) {
    if (fate.cut_to) {
        datagram.bytes.resize(*fate.cut_to);
        ++counters_.truncated;
    }
    for (const std::uint32_t bit : fate.flipped_bits) flip(datagram.bytes, bit);
    if (!fate.flipped_bits.empty()) ++counters_.corrupted;
    return datagram;
}

/// The time at which the last byte has left the line; nullopt if the queue before it is full.
std::optional<TimePoint> Impairment::passed_line(TimePoint now, std::size_t bytes) {
    const auto& [rate, queue_bytes] = options_.rate;
    if (rate == 0) return now;
    const TimePoint starts = std::max(now, line_free_at_);
    const Duration takes = time_on_line(bytes, rate);
    // The datagram on the line itself does not count as queued: an idle line accepts any datagram.
    if (starts > now && starts - now + takes > time_on_line(queue_bytes, rate)) return {};
    line_free_at_ = starts + takes;
    return line_free_at_;
}

void Impairment::enqueue(TimePoint now, const Fate& fate, Datagram datagram) {
    const std::size_t bytes = datagram.bytes.size();
    const bool fits = counters_.queued < limits_.packets && bytes <= limits_.bytes - queued_bytes_;
    const auto leaves = fits ? passed_line(now, bytes) : std::nullopt;
    if (!leaves) {
        ++counters_.overflowed;
        return;
    }
    ++counters_.queued;
    queued_bytes_ += bytes;
    const TimePoint due = std::max(*leaves + options_.delay + fate.jitter, last_due_);
    if (fate.held_back && held_.size() < kMostHeld) {
        hold_back(due, std::move(datagram));
        return;
    }
    last_due_ = due;
    const std::uint64_t flow = datagram.flow;
    in_order_.push_back({.due = due, .datagram = std::move(datagram)});
    let_overtaken_go(flow, due);
}

void Impairment::hold_back(TimePoint due, Datagram datagram) {
    ++counters_.reordered;
    const auto place = late_.emplace(due + options_.reorder.at_most, std::move(datagram));
    if (options_.reorder.packets > 0) {
        held_.push_back({.place = place, .remaining = options_.reorder.packets});
    }
}

/// A datagram of the flow leaves in order at `due`; a held-back datagram for which it is the last
/// to overtake leaves right after it.
void Impairment::let_overtaken_go(std::uint64_t flow, TimePoint due) {
    for (auto held = held_.begin(); held != held_.end();) {
        if (held->place->second.flow != flow || --held->remaining > 0) {
            ++held;
            continue;
        }
        in_order_.push_back({.due = due, .datagram = std::move(held->place->second)});
        late_.erase(held->place);
        held = held_.erase(held);
    }
}

Datagram Impairment::take_late() {
    const auto first = late_.begin();
    std::erase_if(held_, [first](const Held& held) { return held.place == first; });
    Datagram datagram = std::move(first->second);
    late_.erase(first);
    return datagram;
}

std::optional<Datagram> Impairment::poll(TimePoint now) {
    const auto due = next_deadline();
    if (!due || *due > now) return {};
    Datagram datagram;
    if (!in_order_.empty() && in_order_.front().due == *due) {
        datagram = std::move(in_order_.front().datagram);
        in_order_.pop_front();
    } else {
        datagram = take_late();
    }
    NEXAR_ASSERT(counters_.queued > 0 && queued_bytes_ >= datagram.bytes.size());
    --counters_.queued;
    queued_bytes_ -= datagram.bytes.size();
    ++counters_.delivered;
    return datagram;
}

std::optional<TimePoint> Impairment::next_deadline() const noexcept {
    std::optional<TimePoint> first;
    if (!in_order_.empty()) first = in_order_.front().due;
    if (!late_.empty() && (!first || late_.begin()->first < *first)) first = late_.begin()->first;
    return first;
}

std::string describe(const FaultCounters& counters) {
    std::string text;
    for (const auto& [name, counter] : kNamed) {
        const std::uint64_t value = counters.*counter;
        const bool always = text.empty() || name == "delivered";
        if (!always && value == 0) continue;
        fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", name, value);
    }
    return text;
}

}  // namespace nexar::udp_fault
