#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::routing {

/// Allows one act per `interval` on average and `burst` at once (the generic cell rate algorithm:
/// one time instead of a counter, exact in integers). Starts full. The time never goes back.
class Allowance {
public:
    Allowance(Duration interval, std::int64_t burst) noexcept
        : interval_(interval), slack_(interval * (burst - 1)) {}

    /// When the next act is allowed; the past if it is allowed already.
    TimePoint ready_at() const noexcept { return next_ - slack_; }
    bool ready(TimePoint now) const noexcept { return now >= ready_at(); }

    /// Call only when ready.
    void take(TimePoint now) noexcept { next_ = std::max(next_, now) + interval_; }

private:
    Duration interval_;
    Duration slack_;
    TimePoint next_{};
};

}  // namespace nexar::routing
