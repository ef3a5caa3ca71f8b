#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace nexar {
namespace {

Config resolved_settings(const ConfigSources& sources) {
    return Config::resolve(kSettings, sources).value();
}

TEST(Settings, defaults_match_the_option_structs) {
    const Config config = resolved_settings({});
    EXPECT_EQ(log_options(config).level, LogOptions{}.level);
    EXPECT_EQ(log_options(config).lines_per_second, LogOptions{}.lines_per_second);
    EXPECT_EQ(pool_profile(config).tiers()[3].keep, 4U) << "training keeps giant buffers";
    EXPECT_EQ(recorder_options(config).events_per_thread, RecorderOptions{}.events_per_thread);
}

TEST(Settings, values_reach_the_option_structs) {
    const Config config =
        resolved_settings({.environment = {{"NEXAR_LOG_LEVEL", "error"},
                                           {"NEXAR_LOG_RATE_LIMIT", "0"},
                                           {"NEXAR_POOL_PROFILE", "inference"},
                                           {"NEXAR_RECORDER_EVENTS", "1048576"}}});
    EXPECT_EQ(log_options(config).level, LogLevel::error);
    EXPECT_EQ(log_options(config).lines_per_second, 0U);
    EXPECT_EQ(pool_profile(config).tiers()[3].keep, 0U) << "inference keeps no giant buffers";
    EXPECT_EQ(recorder_options(config).events_per_thread, Recorder::kMaxEventsPerThread);
}

TEST(Settings, log_level_names_match_the_log) {
    for (std::size_t i = 0; i < kLogLevels.size(); ++i) {
        EXPECT_EQ(kLogLevels[i], name(static_cast<LogLevel>(i)));
        const Config config =
            resolved_settings({.code = {{"log_level", std::string(kLogLevels[i])}}});
        EXPECT_EQ(log_options(config).level, static_cast<LogLevel>(i));
    }
}

TEST(Settings, link_is_one_of_the_kinds_or_auto) {
    EXPECT_EQ(resolved_settings({}).choice("link"), "auto");
    for (const std::string_view kind : kLinks) {
        EXPECT_EQ(resolved_settings({.code = {{"link", std::string(kind)}}}).choice("link"), kind);
    }
}

TEST(Settings, limits_are_enforced) {
    EXPECT_FALSE(Config::resolve(kSettings, {.code = {{"recorder_events", "1048577"}}}));
    EXPECT_FALSE(Config::resolve(kSettings, {.code = {{"recorder_events", "-1"}}}));
    EXPECT_FALSE(Config::resolve(kSettings, {.code = {{"log_rate_limit", "100001"}}}));
    EXPECT_FALSE(Config::resolve(kSettings, {.code = {{"link", "tcp"}}}));
}

}  // namespace
}  // namespace nexar
