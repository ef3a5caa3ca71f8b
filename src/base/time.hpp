#pragma once

#include <atomic>
#include <chrono>

namespace nexar {

using Duration = std::chrono::nanoseconds;

/// A point in monotonic time, relative to an origin that only its Clock knows. Never wall time:
/// times of two clocks, or of two machines, cannot be compared.
using TimePoint = std::chrono::time_point<struct MonotonicTime, Duration>;

/// The source of `now` for the shell. Core code holds no clock: it receives `now` as a parameter.
/// Any thread may call now(), whose result never decreases in one thread.
class Clock {
public:
    virtual ~Clock() = default;

    virtual TimePoint now() const noexcept = 0;
};

/// The machine's monotonic clock. Most calls read only a counter of the processor
/// (docs/decisions/0021-clock.md). At that moment the result is not ahead of CLOCK_MONOTONIC, and
/// at most 2 us behind it.
class SteadyClock final : public Clock {
public:
    TimePoint now() const noexcept override;
};

/// A clock that advances only on request, for tests and the simulator. Moving it back is a bug and
/// asserts. Any thread may read it; one thread advances it.
class ManualClock final : public Clock {
public:
    explicit ManualClock(TimePoint start) noexcept : now_(start) {}

    TimePoint now() const noexcept override { return now_.load(std::memory_order_acquire); }

    void advance(Duration by) noexcept;
    void advance_to(TimePoint then) noexcept;

private:
    std::atomic<TimePoint> now_;
};

}  // namespace nexar
