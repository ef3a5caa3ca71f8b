#pragma once

#include <atomic>
#include <chrono>

namespace nexar {

using Duration = std::chrono::nanoseconds;

/// A point in monotonic time, counted from an origin that only the Clock knows. Never wall time:
/// points of two clocks, or of two machines, cannot be compared.
using TimePoint = std::chrono::time_point<struct MonotonicTime, Duration>;

/// Where the shell takes `now` from. Core code holds no clock: it is given `now` as a parameter.
/// Any thread may call now(); what it returns never goes back.
class Clock {
public:
    virtual ~Clock() = default;

    virtual TimePoint now() const noexcept = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
public:
    TimePoint now() const noexcept override;
};

/// Time that moves only when told to, for tests and the simulator. Moving it back is a bug and
/// asserts. Any thread may read it; one thread moves it.
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
