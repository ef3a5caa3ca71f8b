#include "base/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nexar {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<ConfigFileEntry> parsed(std::string text) {
    auto entries = parse_config_file({.path = "/etc/nexar.toml", .text = std::move(text)});
    EXPECT_TRUE(entries) << entries.error().what();
    return entries ? *entries : std::vector<ConfigFileEntry>{};
}

std::string why_not(std::string text) {
    const auto entries = parse_config_file({.path = "/etc/nexar.toml", .text = std::move(text)});
    if (entries) return "it is TOML";
    EXPECT_EQ(entries.error().code(), Errc::bad_config);
    return entries.error().cause();
}

template <class T>
const T& held(const ConfigFileEntry& entry) {
    return std::get<T>(entry.value.value);
}

TEST(ConfigFile, returns_keys_values_and_lines_in_order) {
    const auto entries = parsed(
        "# a comment\n"
        "zeta = \"text\"\r\n"
        "\n"
        "beta = true\n"
        "'alpha' = 0x10\n"
        "gamma = -1.5\n");
    ASSERT_EQ(entries.size(), 4U);
    EXPECT_EQ(entries[0].key, "zeta");
    EXPECT_EQ(entries[0].line, 2U);
    EXPECT_EQ(held<std::string>(entries[0]), "text");
    EXPECT_EQ(entries[1].line, 4U);
    EXPECT_TRUE(held<bool>(entries[1]));
    EXPECT_EQ(entries[2].key, "alpha");
    EXPECT_EQ(held<std::int64_t>(entries[2]), 16);
    EXPECT_EQ(entries[3].line, 6U);
    EXPECT_EQ(held<double>(entries[3]), -1.5);
}

TEST(ConfigFile, may_be_empty) {
    EXPECT_TRUE(parsed("").empty());
    EXPECT_TRUE(parsed("# nothing\n\n").empty());
}

TEST(ConfigFile, names_the_types_that_no_setting_accepts) {
    const auto entries = parsed(
        "a = [1, 2]\n"
        "b = {c = 1}\n"
        "c = 2024-01-31\n"
        "d = 12:30:00\n"
        "e = 2024-01-31T12:30:00Z\n"
        "[f]\n"
        "g = 1\n");
    ASSERT_EQ(entries.size(), 6U);
    EXPECT_EQ(held<ForeignValue>(entries[0]).type, "an array");
    EXPECT_EQ(held<ForeignValue>(entries[1]).type, "a table");
    EXPECT_EQ(held<ForeignValue>(entries[2]).type, "a date");
    EXPECT_EQ(held<ForeignValue>(entries[3]).type, "a time");
    EXPECT_EQ(held<ForeignValue>(entries[4]).type, "a date and time");
    EXPECT_EQ(held<ForeignValue>(entries[5]).type, "a table");
    EXPECT_EQ(entries[5].line, 6U);
}

TEST(ConfigFile, invalid_toml_is_rejected_with_its_position) {
    EXPECT_THAT(why_not("a = 1\nb = \"open\n"), StartsWith("file /etc/nexar.toml:2:"));
    EXPECT_THAT(why_not("a = 1\nb = \"open\n"), HasSubstr("is not valid TOML: "));
    EXPECT_THAT(why_not("log_level: debug\n"), StartsWith("file /etc/nexar.toml:1:"));
    EXPECT_THAT(why_not("a = 1\n\na = 2\n"), StartsWith("file /etc/nexar.toml:3:"));
    EXPECT_THAT(why_not("a = 99999999999999999999\n"), HasSubstr("is not valid TOML"));
    EXPECT_THAT(why_not(std::string("a = 1\0", 6)), HasSubstr("is not valid TOML"));
    EXPECT_THAT(why_not("a = \"\xff\"\n"), HasSubstr("is not valid TOML"));
}

TEST(ConfigFile, input_that_trips_a_parser_assertion_is_rejected) {
    for (const std::string_view text : {"[[[1]]]", "[[[]]", "[[="}) {
        EXPECT_THAT(why_not(std::string(text)), HasSubstr("file /etc/nexar.toml")) << text;
        EXPECT_THAT(why_not(std::string(text)), HasSubstr("is not valid TOML")) << text;
    }
}

TEST(ConfigFile, excessive_nesting_is_rejected) {
    EXPECT_THAT(why_not("a = " + std::string(100'000, '[')), HasSubstr("is not valid TOML"));
    EXPECT_THAT(why_not("a = " + std::string(100'000, '{')), HasSubstr("is not valid TOML"));
}

}  // namespace
}  // namespace nexar
