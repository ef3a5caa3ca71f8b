#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::quic {

/// Splits the round trip of a path: the minimum of the last seconds is the path itself, the excess
/// is queueing. Forgets slowly, so that it accepts the longer round trip of a new route in the end.
class RoundTrips {
public:
    void saw(TimePoint now, Duration latest) noexcept {
        if (latest <= Duration::zero()) return;
        if (now - began_ >= kMemory) {
            before_ = current_;
            current_.reset();
            began_ = now;
        }
        current_ = std::min(current_.value_or(latest), latest);
    }

    /// Zero before the first sample.
    Duration least() const noexcept {
        if (!current_) return before_.value_or(Duration::zero());
        return std::min(*current_, before_.value_or(*current_));
    }

    /// True if `smoothed` shows a queue behind which small messages would have to wait.
    bool queued(Duration smoothed) const noexcept {
        return smoothed > least() + std::max(least() / 2, kTolerance);
    }

private:
    static constexpr Duration kMemory = std::chrono::seconds(10);
    static constexpr Duration kTolerance = std::chrono::microseconds(100);

    std::optional<Duration> before_{};
    std::optional<Duration> current_{};
    TimePoint began_{};
};

}  // namespace nexar::quic
