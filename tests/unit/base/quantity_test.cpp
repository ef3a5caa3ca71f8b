#include "base/quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "support/seed.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint64_t kLargestSize = std::numeric_limits<std::uint64_t>::max();

std::string why_no_size(std::string_view text) {
    const auto size = parse_size(text);
    EXPECT_FALSE(size) << text;
    return size ? "" : size.error().cause();
}

std::string why_no_duration(std::string_view text) {
    const auto duration = parse_duration(text);
    EXPECT_FALSE(duration) << text;
    return duration ? "" : duration.error().cause();
}

TEST(ParseSize, knows_decimal_and_binary_units) {
    EXPECT_EQ(*parse_size("0"), 0U);
    EXPECT_EQ(*parse_size("17"), 17U);
    EXPECT_EQ(*parse_size("17B"), 17U);
    EXPECT_EQ(*parse_size("3kB"), 3'000U);
    EXPECT_EQ(*parse_size("3KB"), 3'000U);
    EXPECT_EQ(*parse_size("2MB"), 2'000'000U);
    EXPECT_EQ(*parse_size("1GB"), 1'000'000'000U);
    EXPECT_EQ(*parse_size("5TB"), 5'000'000'000'000U);
    EXPECT_EQ(*parse_size("64KiB"), 65'536U);
    EXPECT_EQ(*parse_size("8MiB"), 8'388'608U);
    EXPECT_EQ(*parse_size("3GiB"), 3'221'225'472U);
    EXPECT_EQ(*parse_size("2TiB"), 2'199'023'255'552U);
}

TEST(ParseSize, accepts_a_fraction_only_if_the_bytes_are_whole) {
    EXPECT_EQ(*parse_size("1.5KiB"), 1536U);
    EXPECT_EQ(*parse_size("1.50000000000000000000000KiB"), 1536U);
    EXPECT_EQ(*parse_size("0.001kB"), 1U);
    EXPECT_EQ(*parse_size("2.0B"), 2U);
    EXPECT_EQ(*parse_size("0.0009765625KiB"), 1U);
    EXPECT_EQ(why_no_size("1.3KiB"), "\"1.3KiB\" is not a whole number of bytes");
    EXPECT_THAT(why_no_size("0.5"), HasSubstr("not a whole number of bytes"));
    EXPECT_THAT(why_no_size("0.0001kB"), HasSubstr("not a whole number of bytes"));
    EXPECT_THAT(why_no_size("0.1234567890123456789TiB"), HasSubstr("not a whole number"));
}

TEST(ParseSize, accepts_the_largest_size_and_nothing_above) {
    EXPECT_EQ(*parse_size("18446744073709551615"), kLargestSize);
    EXPECT_EQ(*parse_size("16777215TiB"), kLargestSize - (1ULL << 40U) + 1);
    EXPECT_EQ(*parse_size("18014398509481983.9990234375KiB"), kLargestSize);
    EXPECT_EQ(why_no_size("18446744073709551616"),
              "\"18446744073709551616\" is too large: the number of bytes overflows 64 bits");
    EXPECT_THAT(why_no_size("16777216TiB"), HasSubstr("the number of bytes overflows"));
    EXPECT_THAT(why_no_size("18446744073.709551616GB"), HasSubstr("the number of bytes overflows"));
    EXPECT_THAT(why_no_size("99999999999999999999999B"),
                HasSubstr("the number of bytes overflows"));
}

TEST(ParseSize, rejects_everything_else_with_a_reason) {
    EXPECT_EQ(why_no_size(""), "\"\" is empty");
    EXPECT_EQ(why_no_size("-1"), "\"-1\" is negative");
    EXPECT_EQ(why_no_size("8M"),
              "\"8M\" has the unknown unit \"M\"; units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB");
    EXPECT_THAT(why_no_size("8mib"), HasSubstr("unknown unit \"mib\""));
    EXPECT_THAT(why_no_size("8 MiB"), HasSubstr("unknown unit \" MiB\""));
    EXPECT_THAT(why_no_size("8MiB "), HasSubstr("unknown unit \"MiB \""));
    EXPECT_THAT(why_no_size(" 8MiB"), HasSubstr("does not start with a number"));
    EXPECT_THAT(why_no_size("+8MiB"), HasSubstr("does not start with a number"));
    EXPECT_THAT(why_no_size("MiB"), HasSubstr("does not start with a number"));
    EXPECT_THAT(why_no_size(".5KiB"), HasSubstr("does not start with a number"));
    EXPECT_THAT(why_no_size("1.KiB"), HasSubstr("no digit after the point"));
    EXPECT_THAT(why_no_size("1.5.5KiB"), HasSubstr("unknown unit"));
    EXPECT_THAT(why_no_size("1e3"), HasSubstr("unknown unit"));
    EXPECT_THAT(why_no_size("0x10"), HasSubstr("unknown unit"));
    EXPECT_THAT(why_no_size("nan"), HasSubstr("does not start with a number"));
}

TEST(ParseDuration, knows_its_units) {
    EXPECT_EQ(*parse_duration("7ns"), 7ns);
    EXPECT_EQ(*parse_duration("10us"), 10us);
    EXPECT_EQ(*parse_duration("250ms"), 250ms);
    EXPECT_EQ(*parse_duration("1.5s"), 1500ms);
    EXPECT_EQ(*parse_duration("2m"), 120s);
    EXPECT_EQ(*parse_duration("0.25h"), 900s);
    EXPECT_EQ(*parse_duration("0s"), 0ns);
    EXPECT_EQ(*parse_duration("0.000000001s"), 1ns);
}

TEST(ParseDuration, requires_a_unit_and_whole_nanoseconds) {
    EXPECT_EQ(why_no_duration("250"), "\"250\" has no unit; add one of ns, us, ms, s, m, h");
    EXPECT_THAT(why_no_duration("0"), HasSubstr("has no unit"));
    EXPECT_THAT(why_no_duration("0.5ns"), HasSubstr("not a whole number of nanoseconds"));
    EXPECT_THAT(why_no_duration("-1s"), HasSubstr("is negative"));
    EXPECT_THAT(why_no_duration("1S"), HasSubstr("unknown unit \"S\"; units are ns"));
    EXPECT_THAT(why_no_duration("1h30m"), HasSubstr("unknown unit"));
    EXPECT_THAT(why_no_duration(""), HasSubstr("is empty"));
}

TEST(ParseDuration, accepts_the_largest_duration_and_nothing_above) {
    EXPECT_EQ(*parse_duration("9223372036854775807ns"), Duration::max());
    EXPECT_EQ(*parse_duration("9223372036.854775807s"), Duration::max());
    EXPECT_THAT(why_no_duration("9223372036854775808ns"),
                HasSubstr("the number of nanoseconds overflows"));
    EXPECT_THAT(why_no_duration("9223372036.854775808s"),
                HasSubstr("the number of nanoseconds overflows"));
    EXPECT_THAT(why_no_duration("3000000h"), HasSubstr("the number of nanoseconds overflows"));
}

TEST(ParseInteger, accepts_integers_of_64_bits) {
    EXPECT_EQ(*parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(*parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(*parse_integer("007"), 7);
    EXPECT_EQ(parse_integer("9223372036854775808").error().cause(),
              "\"9223372036854775808\" does not fit in 64 bits");
    for (const std::string_view text :
         {"+1", " 1", "1 ", "1.0", "1e3", "0x1", "-", "one", "1_000"}) {
        const auto number = parse_integer(text);
        ASSERT_FALSE(number) << text;
        EXPECT_THAT(number.error().cause(), HasSubstr("is not a whole number")) << text;
    }
    EXPECT_EQ(parse_integer("").error().cause(), "\"\" is empty");
}

TEST(ParseReal, accepts_finite_numbers) {
    EXPECT_EQ(*parse_real("0.25"), 0.25);
    EXPECT_EQ(*parse_real("-1e-3"), -0.001);
    EXPECT_EQ(*parse_real("3"), 3.0);
    EXPECT_THAT(parse_real("1e999").error().cause(), HasSubstr("out of the range of a double"));
    for (const std::string_view text : {"nan", "inf", "-infinity"}) {
        EXPECT_THAT(parse_real(text).error().cause(), HasSubstr("is not a finite number")) << text;
    }
    for (const std::string_view text : {"x", "1,5", "1.5 ", "--1", "0x1p3"}) {
        EXPECT_THAT(parse_real(text).error().cause(), HasSubstr("is not a number")) << text;
    }
    EXPECT_THAT(parse_real("").error().cause(), HasSubstr("is empty"));
}

TEST(ParseBoolean, accepts_four_lower_case_words_for_each_value) {
    for (const std::string_view text : {"true", "on", "yes", "1"})
        EXPECT_TRUE(*parse_boolean(text));
    for (const std::string_view text : {"false", "off", "no", "0"}) {
        EXPECT_FALSE(*parse_boolean(text));
    }
    for (const std::string_view text : {"", "True", "2", " true", "t"}) {
        EXPECT_FALSE(parse_boolean(text)) << text;
    }
    EXPECT_EQ(parse_boolean("TRUE").error().cause(), "\"TRUE\" is neither true nor false");
}

TEST(FormatQuantity, uses_the_largest_unit_that_divides) {
    EXPECT_EQ(format_size(0), "0B");
    EXPECT_EQ(format_size(1000), "1000B");
    EXPECT_EQ(format_size(1536), "1536B");
    EXPECT_EQ(format_size(8U << 20U), "8MiB");
    EXPECT_EQ(format_duration(0ns), "0s");
    EXPECT_EQ(format_duration(1500ms), "1500ms");
    EXPECT_EQ(format_duration(60s), "1m");
    EXPECT_EQ(format_duration(90min), "90m");
    EXPECT_EQ(format_duration(1ns), "1ns");
}

TEST(FormatQuantity, parses_back_to_the_same_value) {
    std::mt19937_64 random(test_seed(1));
    for (int i = 0; i < 20'000; ++i) {
        // Every magnitude equally often, and round numbers as often as odd ones.
        const std::uint64_t bits = random() >> (random() % 64);
        const std::uint64_t bytes = bits << (random() % 8 * 10 % 64);
        ASSERT_EQ(*parse_size(format_size(bytes)), bytes);
        const Duration duration(static_cast<Duration::rep>(bits >> 1U));
        ASSERT_EQ(*parse_duration(format_duration(duration)), duration);
    }
}

}  // namespace
}  // namespace nexar
