#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::quic {

/// What the round trip of a path is made of: the least of the last seconds is the way itself, what
/// exceeds it is queues. Forgets slowly, so that a new route with a longer way is believed in the
/// end.
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

    /// Zero while nothing was seen.
    Duration least() const noexcept {
        if (!current_) return before_.value_or(Duration::zero());
        return std::min(*current_, before_.value_or(*current_));
    }

    /// Whether `smoothed` shows a queue that small messages would have to wait behind.
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
