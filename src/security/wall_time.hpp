#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <string>

namespace nexar::security {

/// The time that certificates refer to.
using WallTime = std::chrono::system_clock::time_point;

/// Returns the wall time; only the thread that drives a handshake calls it.
using WallClock = std::function<WallTime()>;

/// Clamps a time that WallTime cannot represent (after the year 2262) to its last value.
constexpr WallTime wall_time(std::time_t seconds) noexcept {
    using Seconds = std::chrono::duration<std::time_t>;
    const auto last = std::chrono::floor<Seconds>(WallTime::max().time_since_epoch());
    const auto first = std::chrono::ceil<Seconds>(WallTime::min().time_since_epoch());
    return WallTime(std::clamp(Seconds(seconds), first, last));
}

/// "2026-05-04T03:02:01Z"
std::string in_words(WallTime time);

/// "3 days", "2 h", "11 min" or "4 s": the largest unit that fits, rounded down. `span` must not be
/// negative.
std::string in_words(std::chrono::system_clock::duration span);

}  // namespace nexar::security
