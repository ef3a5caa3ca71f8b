#include "base/time.hpp"

#include "base/assert.hpp"

namespace nexar {

TimePoint SteadyClock::now() const noexcept {
    return TimePoint(
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
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
