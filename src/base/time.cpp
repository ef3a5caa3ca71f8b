#include "base/time.hpp"

#include <cstdint>
#include <optional>

#include "base/assert.hpp"
#include "base/tick_counter.hpp"

namespace nexar {

namespace {

// For how long a thread adds ticks to its last reading of the machine's clock. So a rate that is
// wrong, or a step of the machine's clock, cannot change the result by much.
constexpr std::int64_t kExtrapolate = 100'000;  // ns

std::int64_t machine_time() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The clock and the counter, read at the same time.
struct Reading {
    std::uint64_t ticks = 0;
    std::int64_t time = 0;
};

/// Nullopt if another thread took the processor between the two.
std::optional<Reading> read_together() noexcept {
    constexpr std::int64_t kMostApart = 500;
    const std::int64_t before = machine_time();
    const std::uint64_t ticks = TickCounter::read();
    if (machine_time() - before > kMostApart) return std::nullopt;
    return Reading{.ticks = ticks, .time = before};
}

/// How fast the counter runs, measured once by two readings, possibly of two threads.
class TickRate {
public:
    static constexpr int kBits = 32;

    /// Nanoseconds per tick, with kBits binary places; 0: not known.
    std::uint64_t get() noexcept {
        const State now = state_.load(std::memory_order_acquire);
        if (now == State::begun || now == State::unknown) measure(now);
        return factor_.load(std::memory_order_relaxed);
    }

private:
    enum class State : std::uint8_t { unknown, begun, busy, known };

    void measure(State before) noexcept {
        constexpr std::int64_t kLeast = 20'000'000;  // ns between the readings
        if (before == State::begun) {
            if (machine_time() - first_.time < kLeast) return;
        } else if (!TickCounter::is_steady()) {  // takes long in a virtual machine
            return state_.store(State::known, std::memory_order_relaxed);
        }
        const auto reading = read_together();
        if (!reading || !state_.compare_exchange_strong(before, State::busy)) return;
        if (before == State::unknown) {
            first_ = *reading;
            return state_.store(State::begun, std::memory_order_release);
        }
        const auto time = static_cast<double>(reading->time - first_.time);
        const auto ticks = static_cast<double>(reading->ticks - first_.ticks);
        // A little too slow, so that no thread is ever ahead of the machine's clock, which the
        // kernel may slow down by 500 ppm. Therefore no thread's time ever goes back either.
        constexpr double kSlower = 0.999;
        factor_.store(
            static_cast<std::uint64_t>(kSlower * time / ticks * (std::uint64_t{1} << kBits)),
            std::memory_order_relaxed);
        state_.store(State::known, std::memory_order_release);
    }

    std::atomic<State> state_ = State::unknown;
    Reading first_;  // written in `busy`, read in `begun`
    std::atomic<std::uint64_t> factor_ = 0;
};

constinit TickRate tick_rate;

/// A thread's last reading of the machine's clock, and what it needs to extrapolate from it.
struct Anchor {
    Reading reading{};
    std::uint64_t factor = 0;
    std::uint64_t window = 0;  // in ticks; 0: must not extrapolate
};

constinit thread_local Anchor anchor;

TimePoint read_machine_clock() noexcept {
    const std::uint64_t factor = tick_rate.get();
    const std::uint64_t before = TickCounter::read();
    const std::int64_t time = machine_time();
    const std::uint64_t after = TickCounter::read();
    anchor = {.reading = {.ticks = after, .time = time}, .factor = factor};
    if (factor != 0) {
        const std::uint64_t window = (std::uint64_t{kExtrapolate} << TickRate::kBits) / factor;
        // If the thread lost the processor in between, its time would lag.
        constexpr std::uint64_t kMostLag = 100;  // a part of the window
        if (after - before < window / kMostLag) anchor.window = window;
    }
    return TimePoint(Duration(time));
}

}  // namespace

TimePoint SteadyClock::now() const noexcept {
    const Anchor& last = anchor;
    const std::uint64_t ticks = TickCounter::read() - last.reading.ticks;
    if (ticks >= last.window) return read_machine_clock();
    const auto since = static_cast<std::int64_t>((ticks * last.factor) >> TickRate::kBits);
    return TimePoint(Duration(last.reading.time + since));
}

void ManualClock::advance(Duration by) noexcept {
    NEXAR_ASSERT(by >= Duration::zero(), "monotonic time does not go back");
    advance_to(now() + by);
}

void ManualClock::advance_to(TimePoint then) noexcept {
    NEXAR_ASSERT(then >= now(), "monotonic time does not go back");
    now_.store(then, std::memory_order_release);
}

}  // namespace nexar
