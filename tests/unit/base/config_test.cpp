#include "base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config_table.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Config resolved(const ConfigSources& sources) {
    auto config = Config::resolve(kTestTable, sources);
    EXPECT_TRUE(config) << config.error().what();
    return config ? *std::move(config) : *Config::resolve(kTestTable, {});
}

std::string why_not(const ConfigSources& sources) {
    const auto config = Config::resolve(kTestTable, sources);
    if (config) return "it resolved";
    EXPECT_EQ(config.error().code(), Errc::bad_config);
    return config.error().cause();
}

std::string origin(const Config& config, std::string_view name) {
    return to_text(config.entry(name).origin);
}

ConfigFile etc(std::string text) {
    return {.path = "/etc/nexar.toml", .text = std::move(text)};
}

TEST(Config, holds_the_defaults_without_any_source) {
    const Config config = resolved({});
    EXPECT_TRUE(config.boolean("verify"));
    EXPECT_EQ(config.integer("retry_count"), 3);
    EXPECT_EQ(config.real("load_factor"), 0.5);
    EXPECT_EQ(config.size("eager_limit"), 16'384U);
    EXPECT_EQ(config.duration("heartbeat"), 50ms);
    EXPECT_EQ(config.choice("colour"), "green");
    EXPECT_EQ(config.text("cluster_name"), "default");
    EXPECT_EQ(config.entries().size(), kTestTable.size());
    for (const Config::Entry& entry : config.entries()) {
        EXPECT_EQ(to_text(entry.origin), "default");
    }
    EXPECT_THAT(config.warnings(), IsEmpty());
}

TEST(Config, uses_the_strongest_source_and_remembers_it) {
    ConfigSources sources{.code = {{"retry_count", "5"}},
                          .flags = {{"--nexar-retry-count", "4"}},
                          .environment = {{"NEXAR_RETRY_COUNT", "3"}},
                          .files = {{.path = "/home/u/nexar.toml", .text = "\nretry_count = 2\n"},
                                    etc("retry_count = 1\n")}};
    const auto strongest = [&] {
        const Config config = resolved(sources);
        return std::pair(config.integer("retry_count"), origin(config, "retry_count"));
    };
    EXPECT_EQ(strongest(), std::pair(std::int64_t{5}, std::string("code")));
    sources.code.clear();
    EXPECT_EQ(strongest(),
              std::pair(std::int64_t{4}, std::string("command line --nexar-retry-count")));
    sources.flags.clear();
    EXPECT_EQ(strongest(),
              std::pair(std::int64_t{3}, std::string("environment NEXAR_RETRY_COUNT")));
    sources.environment.clear();
    EXPECT_EQ(strongest(), std::pair(std::int64_t{2}, std::string("file /home/u/nexar.toml:2")));
    sources.files.erase(sources.files.begin());
    EXPECT_EQ(strongest(), std::pair(std::int64_t{1}, std::string("file /etc/nexar.toml:1")));
    sources.files.clear();
    EXPECT_EQ(strongest(), std::pair(std::int64_t{3}, std::string("default")));
}

TEST(Config, merges_files_setting_by_setting) {
    const Config config =
        resolved({.files = {{.path = "a.toml", .text = "colour = \"red\"\n"},
                            {.path = "b.toml", .text = "colour = \"blue\"\nverify = false\n"}}});
    EXPECT_EQ(config.choice("colour"), "red");
    EXPECT_EQ(origin(config, "colour"), "file a.toml:1");
    EXPECT_FALSE(config.boolean("verify"));
    EXPECT_EQ(origin(config, "verify"), "file b.toml:2");
}

TEST(Config, the_last_duplicate_wins_but_in_the_environment_the_first) {
    const Config config =
        resolved({.code = {{"verify", "true"}, {"verify", "false"}},
                  .flags = {{"--nexar-colour", "red"}, {"--nexar-colour", "blue"}},
                  .environment = {{"NEXAR_RETRY_COUNT", "1"}, {"NEXAR_RETRY_COUNT", "2"}}});
    EXPECT_FALSE(config.boolean("verify"));
    EXPECT_EQ(config.choice("colour"), "blue");
    EXPECT_EQ(config.integer("retry_count"), 1);
}

TEST(Config, error_names_setting_origin_value_and_allowed_values) {
    EXPECT_EQ(why_not({.environment = {{"NEXAR_HEARTBEAT", "fast"}}}),
              "heartbeat (environment NEXAR_HEARTBEAT): \"fast\" does not start with a number; "
              "allowed: a duration (written like 250ms) from 1ms to 10s");
    EXPECT_EQ(why_not({.flags = {{"--nexar-colour", "purple"}}}),
              "colour (command line --nexar-colour): \"purple\" is unknown; allowed: red, green, "
              "blue");
    EXPECT_EQ(why_not({.files = {etc("\n\nretry_count = 101\n")}}),
              "retry_count (file /etc/nexar.toml:3): 101 is out of range; allowed: a whole number "
              "from -1 to 100 times");
    EXPECT_EQ(why_not({.files = {etc("eager_limit = true\n")}}),
              "eager_limit (file /etc/nexar.toml:1): the boolean true is not a valid size; "
              "allowed: a size (written like 64KiB) from 1KiB to 1MiB");
    EXPECT_THAT(why_not({.code = {{"verify", "maybe"}}}), StartsWith("verify (code): \"maybe\""));
    EXPECT_THAT(why_not({.environment = {{"NEXAR_COLOUR", ""}}}), HasSubstr("\"\" is empty"));
}

TEST(Config, a_bad_value_is_an_error_even_if_overridden) {
    EXPECT_THAT(why_not({.code = {{"colour", "red"}}, .environment = {{"NEXAR_COLOUR", "grey"}}}),
                StartsWith("colour (environment NEXAR_COLOUR)"));
    EXPECT_THAT(why_not({.environment = {{"NEXAR_COLOUR", "red"}}, .files = {etc("colour = 3\n")}}),
                StartsWith("colour (file /etc/nexar.toml:1): the integer 3 is not a valid choice"));
    EXPECT_THAT(why_not({.flags = {{"--nexar-colour", "grey"}, {"--nexar-colour", "red"}}}),
                HasSubstr("\"grey\""));
    EXPECT_THAT(why_not({.environment = {{"NEXAR_COLOUR", "red"}, {"NEXAR_COLOUR", "grey"}}}),
                HasSubstr("\"grey\""));
}

TEST(Config, reports_all_problems_at_once) {
    const std::string cause = why_not({.flags = {{"--nexar-colour", "grey"}},
                                       .environment = {{"NEXAR_VERIFY", "x"}},
                                       .files = {etc("colour = 1\nwrong = 2\n")}});
    EXPECT_THAT(cause, StartsWith("4 problems:\n"));
    EXPECT_THAT(cause, HasSubstr("\n  colour (file /etc/nexar.toml:1)"));
    EXPECT_THAT(cause, HasSubstr("\n  file /etc/nexar.toml:2: \"wrong\" is not a setting"));
    EXPECT_THAT(cause, HasSubstr("\n  verify (environment NEXAR_VERIFY)"));
    EXPECT_THAT(cause, HasSubstr("\n  colour (command line --nexar-colour)"));
}

TEST(Config, limits_the_number_of_reported_problems) {
    ConfigSources sources;
    for (int i = 0; i < 1000; ++i) {
        sources.code.push_back({std::string(1000, 'x') + std::to_string(i), "1"});
    }
    const std::string cause = why_not(sources);
    EXPECT_THAT(cause, StartsWith("1000 problems:"));
    EXPECT_THAT(cause, HasSubstr("and 984 more"));
    EXPECT_LT(cause.size(), 4096U);
}

TEST(Config, an_unknown_key_or_flag_is_an_error_with_the_nearest_name) {
    EXPECT_EQ(why_not({.files = {etc("color = \"red\"\n")}}),
              "file /etc/nexar.toml:1: \"color\" is not a setting; did you mean colour?");
    EXPECT_EQ(why_not({.flags = {{"--nexar-hartbeat", "1s"}}}),
              "command line: \"--nexar-hartbeat\" is not a nexar flag; did you mean "
              "--nexar-heartbeat?");
    EXPECT_EQ(why_not({.flags = {{"--nexar-retry_count", "1"}}}),
              "command line: \"--nexar-retry_count\" is not a nexar flag; did you mean "
              "--nexar-retry-count?");
    EXPECT_EQ(why_not({.code = {{"hearbeat", "1s"}}}),
              "code: \"hearbeat\" is not a setting; did you mean heartbeat?");
    EXPECT_EQ(why_not({.files = {etc("bandwidth_limit = 1\n")}}),
              "file /etc/nexar.toml:1: \"bandwidth_limit\" is not a setting; `nexar config` lists "
              "all settings");
    EXPECT_THAT(why_not({.files = {etc("[heartbeats]\nx = 1\n")}}),
                HasSubstr("\"heartbeats\" is not a setting (it is a table; settings must be "
                          "outside of tables); did you mean heartbeat?"));
}

TEST(Config, names_in_files_and_environment_are_case_sensitive) {
    EXPECT_THAT(why_not({.files = {etc("Colour = \"red\"\n")}}), HasSubstr("did you mean colour?"));
    const Config config = resolved({.environment = {{"NEXAR_Colour", "red"}}});
    EXPECT_EQ(config.choice("colour"), "green");
    EXPECT_THAT(config.warnings(), ElementsAre(HasSubstr("did you mean NEXAR_COLOUR?")));
}

TEST(Config, a_flag_without_a_value_is_an_error) {
    EXPECT_EQ(why_not({.flags = {{"--nexar-verify", std::nullopt}}}),
              "verify (command line --nexar-verify): the value is missing; allowed: true or false");
}

TEST(Config, invalid_toml_is_reported_together_with_other_problems) {
    const std::string cause =
        why_not({.environment = {{"NEXAR_VERIFY", "x"}}, .files = {etc("colour = \"red\n")}});
    EXPECT_THAT(cause, StartsWith("2 problems:"));
    EXPECT_THAT(cause, HasSubstr("file /etc/nexar.toml:1:"));
    EXPECT_THAT(cause, HasSubstr("NEXAR_VERIFY"));
}

TEST(Config, an_unknown_variable_is_a_warning_that_does_not_show_its_value) {
    const Config config = resolved({.environment = {{"NEXAR_HEARBEAT", "hunter2"},
                                                    {"NEXAR_JOB_SECRTE", "hunter2"},
                                                    {"NEXAR_BANDWIDTH_MAX", "hunter2"},
                                                    {"NEXAR", "hunter2"},
                                                    {"PATH", "/bin"}}});
    EXPECT_THAT(
        config.warnings(),
        testing::UnorderedElementsAre(
            "environment variable NEXAR_HEARBEAT is not a setting and has no effect; did you mean "
            "NEXAR_HEARTBEAT?",
            "environment variable NEXAR_JOB_SECRTE is not a setting and has no effect; did you "
            "mean NEXAR_JOB_SECRET?",
            "environment variable NEXAR_BANDWIDTH_MAX is not a setting and has no effect; `nexar "
            "config` lists all settings"));
}

TEST(Config, does_not_show_the_value_of_an_unknown_key_or_flag) {
    EXPECT_THAT(why_not({.flags = {{"--nexar-tokn", "hunter2"}}}), Not(HasSubstr("hunter2")));
    EXPECT_THAT(why_not({.files = {etc("tokn = \"hunter2\"\n")}}), Not(HasSubstr("hunter2")));
}

TEST(Config, knows_the_variables_that_are_not_settings) {
    const Config config = resolved(
        {.environment = {
             {"NEXAR_CONFIG", "/x"}, {"NEXAR_JOB_SECRET", "00"}, {"NEXAR_TEST_SEED", "1"}}});
    EXPECT_THAT(config.warnings(), IsEmpty());
}

TEST(Config, limits_the_number_of_warnings) {
    ConfigSources sources;
    for (int i = 0; i < 100; ++i) {
        sources.environment.push_back({"NEXAR_UNKNOWN_THING_" + std::to_string(i), ""});
    }
    const Config config = resolved(sources);
    ASSERT_EQ(config.warnings().size(), 9U);
    EXPECT_EQ(config.warnings().back(),
              "92 more environment variables start with NEXAR_ but are not settings");
}

TEST(Config, makes_names_and_paths_printable) {
    EXPECT_THAT(why_not({.files = {{.path = "/a\nb", .text = "x = 1\n"}}}),
                StartsWith("file /a\\nb:1:"));
    const Config config = resolved({.environment = {{"NEXAR_\x1b[2J", "1"}}});
    EXPECT_THAT(config.warnings(), ElementsAre(HasSubstr("NEXAR_\\x1b[2J")));
}

TEST(ConfigDeathTest, reading_an_unknown_setting_or_wrong_type_is_a_bug) {
    const Config config = resolved({});
    EXPECT_DEATH((void)config.integer("retries"), "not in the table");
    EXPECT_DEATH((void)config.integer("heartbeat"), "another type");
    EXPECT_DEATH((void)config.text("colour"), "another type");
}

TEST(ConfigDeathTest, an_invalid_table_is_a_bug) {
    const std::array<Setting, 1> reserved = {
        Setting{.name = "config", .spec = BooleanSpec{}, .help = "x"}};
    EXPECT_DEATH((void)Config::resolve(reserved, {}), "reserved name");
    const std::array<Setting, 1> helpless = {Setting{.name = "a", .spec = BooleanSpec{}}};
    EXPECT_DEATH((void)Config::resolve(helpless, {}), "valid_table");
}

}  // namespace
}  // namespace nexar
