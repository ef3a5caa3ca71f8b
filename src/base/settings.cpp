#include "base/settings.hpp"

#include <algorithm>

namespace nexar {

namespace {

static_assert(static_cast<std::size_t>(LogLevel::off) == kLogLevels.size() - 1);

template <class Choices>
std::size_t index_of(const Choices& choices, std::string_view choice) noexcept {
    return static_cast<std::size_t>(std::ranges::find(choices, choice) - choices.begin());
}

}  // namespace

LogOptions log_options(const Config& config) noexcept {
    return {.level = static_cast<LogLevel>(index_of(kLogLevels, config.choice("log_level"))),
            .lines_per_second = static_cast<std::uint32_t>(config.integer("log_rate_limit"))};
}

PoolProfile pool_profile(const Config& config) {
    return config.choice("pool_profile") == "inference" ? PoolProfile::inference()
                                                        : PoolProfile::training();
}

RecorderOptions recorder_options(const Config& config) noexcept {
    return {.events_per_thread = static_cast<std::size_t>(config.integer("recorder_events"))};
}

}  // namespace nexar
