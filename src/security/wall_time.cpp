#include "security/wall_time.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace nexar::security {

std::string in_words(WallTime time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{seconds}));
}

std::string in_words(std::chrono::system_clock::duration span) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(span).count();
    if (seconds >= 172800) return fmt::format("{} days", seconds / 86400);
    if (seconds >= 7200) return fmt::format("{} h", seconds / 3600);
    if (seconds >= 120) return fmt::format("{} min", seconds / 60);
    return fmt::format("{} s", seconds);
}

}  // namespace nexar::security
