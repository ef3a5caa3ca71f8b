#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace nexar::quic {

/// Lets `per_second` units pass on average and `burst` at once. Starts full. No clock inside: the
/// caller passes the time, which never goes back.
class TokenBucket {
public:
    TokenBucket(double per_second, double burst) noexcept
        : per_second_(per_second), burst_(burst), tokens_(burst) {}

    /// Takes `units` if there are enough; all or nothing.
    bool take(TimePoint now, double units = 1) noexcept {
        refill(now);
        if (tokens_ < units) return false;
        tokens_ -= units;
        return true;
    }

    /// True if take() would succeed.
    bool has(TimePoint now, double units = 1) noexcept {
        refill(now);
        return tokens_ >= units;
    }

    /// Returns units, up to the burst.
    void give(double units) noexcept { tokens_ = std::min(burst_, tokens_ + units); }

private:
    void refill(TimePoint now) noexcept {
        if (now <= at_) return;
        const double seconds = std::chrono::duration<double>(now - at_).count();
        tokens_ = std::min(burst_, tokens_ + seconds * per_second_);
        at_ = now;
    }

    double per_second_;
    double burst_;
    double tokens_;
    TimePoint at_{};
};

}  // namespace nexar::quic
