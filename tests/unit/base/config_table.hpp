#pragma once

#include <array>
#include <string_view>

#include "base/setting.hpp"

namespace nexar {

inline constexpr std::array<std::string_view, 3> kColours = {"red", "green", "blue"};

/// One setting of each type, in both scopes, for the configuration tests.
inline constexpr std::array kTestTable = std::to_array<Setting>({
    {.name = "verify", .spec = BooleanSpec{.fallback = true}, .help = "Checks twice"},
    {.name = "retry_count",
     .spec = IntegerSpec{.fallback = 3, .min = -1, .max = 100, .unit = "times"},
     .scope = SettingScope::cluster,
     .help = "How often to try again"},
    {.name = "load_factor",
     .spec = RealSpec{.fallback = 0.5, .min = 0, .max = 1},
     .help = "When to grow"},
    {.name = "eager_limit",
     .spec = SizeSpec{.fallback = 16'384, .min = 1024, .max = 1'048'576},
     .scope = SettingScope::cluster,
     .help = "The largest message that is copied"},
    {.name = "heartbeat",
     .spec = DurationSpec{.fallback = std::chrono::milliseconds(50),
                          .min = std::chrono::milliseconds(1),
                          .max = std::chrono::seconds(10)},
     .scope = SettingScope::cluster,
     .help = "How often to send a sign of life"},
    {.name = "colour",
     .spec = ChoiceSpec{.fallback = "green", .choices = kColours},
     .help = "What it looks like"},
    {.name = "cluster_name",
     .spec = TextSpec{.fallback = "default", .max_bytes = 16},
     .scope = SettingScope::cluster,
     .help = "What it is called"},
});
static_assert(valid_table(kTestTable));

}  // namespace nexar
