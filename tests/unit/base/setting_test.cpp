#include "base/setting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "config_table.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Setting& setting(std::string_view name) {
    for (const Setting& s : kTestTable) {
        if (s.name == name) return s;
    }
    ADD_FAILURE() << name;
    return kTestTable[0];
}

template <class T>
T text(std::string_view name, std::string_view given) {
    const auto value = read_value(setting(name), TextValue{given});
    if (!value) {
        ADD_FAILURE() << value.error().what();
        return {};
    }
    return std::get<T>(*value);
}

template <class T>
T file(std::string_view name, const FileValue& given) {
    const auto value = read_value(setting(name), given);
    if (!value) {
        ADD_FAILURE() << value.error().what();
        return {};
    }
    return std::get<T>(*value);
}

std::string why_not(std::string_view name, std::string_view given) {
    const auto value = read_value(setting(name), TextValue{given});
    return value ? "it is allowed" : value.error().cause();
}

std::string why_not(std::string_view name, const FileValue& given) {
    const auto value = read_value(setting(name), given);
    return value ? "it is allowed" : value.error().cause();
}

TEST(Setting, reads_every_type_from_text) {
    EXPECT_FALSE(text<bool>("verify", "off"));
    EXPECT_EQ(text<std::int64_t>("retry_count", "-1"), -1);
    EXPECT_EQ(text<double>("load_factor", "0.75"), 0.75);
    EXPECT_EQ(text<std::uint64_t>("eager_limit", "64KiB"), 65'536U);
    EXPECT_EQ(text<Duration>("heartbeat", "1.5s"), 1500ms);
    EXPECT_EQ(text<std::string>("colour", "blue"), "blue");
    EXPECT_EQ(text<std::string>("cluster_name", "my cluster"), "my cluster");
    EXPECT_EQ(text<std::string>("cluster_name", ""), "");
}

TEST(Setting, reads_every_type_from_a_file) {
    EXPECT_FALSE(file<bool>("verify", {false}));
    EXPECT_EQ(file<std::int64_t>("retry_count", {std::int64_t{7}}), 7);
    EXPECT_EQ(file<double>("load_factor", {0.25}), 0.25);
    EXPECT_EQ(file<double>("load_factor", {std::int64_t{1}}), 1.0);
    EXPECT_EQ(file<std::uint64_t>("eager_limit", {std::string("2KiB")}), 2048U);
    EXPECT_EQ(file<std::uint64_t>("eager_limit", {std::int64_t{4096}}), 4096U);
    EXPECT_EQ(file<Duration>("heartbeat", {std::string("250ms")}), 250ms);
    EXPECT_EQ(file<std::string>("colour", {std::string("red")}), "red");
    EXPECT_EQ(file<std::string>("cluster_name", {std::string("x")}), "x");
}

TEST(Setting, error_quotes_the_value_and_says_what_is_allowed) {
    EXPECT_EQ(why_not("verify", "maybe"),
              "\"maybe\" is neither true nor false; allowed: true or false");
    EXPECT_EQ(why_not("retry_count", "101"),
              "\"101\" is out of range; allowed: a whole number from -1 to 100 times");
    EXPECT_EQ(why_not("load_factor", "-0.5"),
              "\"-0.5\" is out of range; allowed: a number from 0 to 1");
    EXPECT_EQ(
        why_not("eager_limit", "2048KiB"),
        "\"2048KiB\" is out of range; allowed: a size (written like 64KiB) from 1KiB to 1MiB");
    EXPECT_EQ(
        why_not("heartbeat", "11000ms"),
        "\"11000ms\" is out of range; allowed: a duration (written like 250ms) from 1ms to 10s");
    EXPECT_EQ(why_not("heartbeat", "0s"),
              "\"0s\" is out of range; allowed: a duration (written like 250ms) from 1ms to 10s");
    EXPECT_EQ(why_not("colour", "gren"),
              "\"gren\" is unknown, did you mean \"green\"?; allowed: red, green, blue");
    EXPECT_EQ(why_not("colour", "purple"), "\"purple\" is unknown; allowed: red, green, blue");
    EXPECT_EQ(why_not("colour", ""), "\"\" is empty; allowed: red, green, blue");
    EXPECT_EQ(why_not("cluster_name", "seventeen letters"),
              "\"seventeen letters\" is 17 bytes long; allowed: at most 16 bytes of text without "
              "control characters");
    EXPECT_THAT(why_not("cluster_name", "a\nb"),
                HasSubstr("\"a\\nb\" contains a control character"));
}

TEST(Setting, bounds_include_their_ends) {
    EXPECT_EQ(text<std::int64_t>("retry_count", "100"), 100);
    EXPECT_EQ(text<std::uint64_t>("eager_limit", "1KiB"), 1024U);
    EXPECT_EQ(text<std::uint64_t>("eager_limit", "1MiB"), 1'048'576U);
    EXPECT_EQ(text<Duration>("heartbeat", "10s"), 10s);
    EXPECT_THAT(why_not("eager_limit", "1023B"), HasSubstr("\"1023B\" is out of range"));
    EXPECT_THAT(why_not("heartbeat", "999999ns"), HasSubstr("out of range"));
}

TEST(Setting, error_names_both_types_if_a_file_has_the_wrong_one) {
    EXPECT_THAT(why_not("verify", FileValue{std::string("true")}),
                HasSubstr("the string \"true\" is not a valid boolean"));
    EXPECT_THAT(why_not("verify", FileValue{std::int64_t{1}}),
                HasSubstr("the integer 1 is not a valid boolean"));
    EXPECT_THAT(why_not("retry_count", FileValue{std::string("3")}),
                HasSubstr("the string \"3\" is not a valid integer"));
    EXPECT_THAT(why_not("retry_count", FileValue{3.5}),
                HasSubstr("the float 3.5 is not a valid integer"));
    EXPECT_THAT(why_not("retry_count", FileValue{true}),
                HasSubstr("the boolean true is not a valid integer"));
    EXPECT_THAT(why_not("load_factor", FileValue{false}),
                HasSubstr("the boolean false is not a valid real"));
    EXPECT_THAT(why_not("load_factor", FileValue{std::string("1")}),
                HasSubstr("the string \"1\" is not a valid real"));
    EXPECT_THAT(why_not("eager_limit", FileValue{1.5}),
                HasSubstr("the float 1.5 is not a valid size"));
    EXPECT_THAT(why_not("heartbeat", FileValue{true}),
                HasSubstr("the boolean true is not a valid duration"));
    EXPECT_THAT(why_not("colour", FileValue{std::int64_t{2}}),
                HasSubstr("the integer 2 is not a valid choice"));
    EXPECT_THAT(why_not("cluster_name", FileValue{ForeignValue{"an array"}}),
                HasSubstr("an array is not a valid text"));
}

TEST(Setting, a_plain_number_in_a_file_is_a_size_but_not_a_duration) {
    EXPECT_THAT(why_not("eager_limit", FileValue{std::int64_t{-4096}}),
                HasSubstr("-4096 is negative"));
    EXPECT_THAT(why_not("eager_limit", FileValue{std::int64_t{4}}), HasSubstr("4 is out of range"));
    EXPECT_THAT(why_not("heartbeat", FileValue{std::int64_t{2}}),
                HasSubstr("2 has no unit; write a string such as \"2s\""));
    EXPECT_THAT(why_not("heartbeat", FileValue{0.25}),
                HasSubstr("0.25 has no unit; write a string such as \"0.25s\""));
}

TEST(Setting, a_real_must_be_finite) {
    EXPECT_THAT(why_not("load_factor", FileValue{std::numeric_limits<double>::quiet_NaN()}),
                HasSubstr("nan is not a finite number"));
    EXPECT_THAT(why_not("load_factor", FileValue{std::numeric_limits<double>::infinity()}),
                HasSubstr("inf is not a finite number"));
    EXPECT_THAT(why_not("load_factor", "nan"), HasSubstr("is not a finite number"));
}

TEST(Setting, default_and_canonical_text_parse_to_the_same_value) {
    for (const Setting& s : kTestTable) {
        const SettingValue value = default_value(s);
        const auto again = read_value(s, TextValue{to_text(value)});
        ASSERT_TRUE(again) << s.name;
        EXPECT_EQ(*again, value) << s.name;
    }
    EXPECT_EQ(to_text(SettingValue(true)), "true");
    EXPECT_EQ(to_text(SettingValue(std::uint64_t{8'388'608})), "8MiB");
    EXPECT_EQ(to_text(SettingValue(Duration(250ms))), "250ms");
    EXPECT_EQ(to_text(SettingValue(-0.0)), to_text(SettingValue(0.0)));
    EXPECT_EQ(to_text(SettingValue(0.1)), "0.1");
}

TEST(Setting, allowed_omits_bounds_that_exclude_nothing) {
    constexpr Setting kFree{.name = "free", .spec = IntegerSpec{}, .help = "Anything"};
    constexpr Setting kFrom{
        .name = "from", .spec = SizeSpec{.fallback = 9, .min = 9}, .help = "Big"};
    constexpr Setting kUpTo{
        .name = "up_to", .spec = DurationSpec{.max = std::chrono::hours(2)}, .help = "Short"};
    EXPECT_EQ(allowed(kFree), "a whole number");
    EXPECT_EQ(allowed(kFrom), "a size (written like 64KiB) from 9B");
    EXPECT_EQ(allowed(kUpTo), "a duration (written like 250ms) up to 2h");
}

TEST(Setting, has_a_name_for_each_source) {
    EXPECT_EQ(environment_name("log_level"), "NEXAR_LOG_LEVEL");
    EXPECT_EQ(flag_name("log_level"), "--nexar-log-level");
    EXPECT_EQ(type_name(setting("heartbeat")), "duration");
    EXPECT_EQ(name(SettingScope::cluster), "cluster");
}

TEST(SettingTable, is_rejected_if_invalid) {
    constexpr auto kRefused = [](Setting first, std::string_view second = "other") {
        const std::array<Setting, 2> table = {
            first, Setting{.name = second, .spec = BooleanSpec{}, .help = "x"}};
        return !valid_table(table);
    };
    constexpr Setting kGood{.name = "a_1", .spec = BooleanSpec{}, .help = "x"};
    static_assert(!kRefused(kGood));
    static_assert(kRefused(kGood, "a_1"), "a duplicate name");
    static_assert(kRefused({.name = "a", .spec = BooleanSpec{}}), "no help");
    static_assert(kRefused({.name = "A", .spec = BooleanSpec{}, .help = "x"}));
    static_assert(kRefused({.name = "a-b", .spec = BooleanSpec{}, .help = "x"}));
    static_assert(kRefused({.name = "1a", .spec = BooleanSpec{}, .help = "x"}));
    static_assert(kRefused({.name = "a_", .spec = BooleanSpec{}, .help = "x"}));
    static_assert(kRefused({.name = "", .spec = BooleanSpec{}, .help = "x"}));
    static_assert(kRefused(
        {.name = "a", .spec = IntegerSpec{.fallback = 5, .min = 0, .max = 4}, .help = "x"}));
    static_assert(kRefused(
        {.name = "a", .spec = ChoiceSpec{.fallback = "x", .choices = kColours}, .help = "x"}));
    static_assert(kRefused({.name = "a", .spec = DurationSpec{.min = Duration(-1)}, .help = "x"}));
    SUCCEED();
}

}  // namespace
}  // namespace nexar
