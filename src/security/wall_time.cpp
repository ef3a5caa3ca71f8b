#include "security/wall_time.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace nexar::security {

WallTime wall_time(std::time_t seconds) noexcept {
    using std::chrono::floor;
    using Seconds = std::chrono::duration<std::time_t>;
    const auto last = floor<Seconds>(WallTime::max().time_since_epoch());
    const auto first = std::chrono::ceil<Seconds>(WallTime::min().time_since_epoch());
    return WallTime(std::clamp(Seconds(seconds), first, last));
}

std::string in_words(WallTime time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{seconds}));
}

std::string in_words(std::chrono::system_clock::duration span) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(span).count();
    if (seconds >= 2 * 86400) return fmt::format("{} days", seconds / 86400);
    if (seconds >= 2 * 3600) return fmt::format("{} h", seconds / 3600);
    if (seconds >= 2 * 60) return fmt::format("{} min", seconds / 60);
    return fmt::format("{} s", seconds);
}

}  // namespace nexar::security
