#include "base/config_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nexar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Split {
    std::vector<ConfigFlag> flags;
    std::vector<std::string> rest;
};

Split split(const std::vector<std::string>& arguments) {
    SplitArguments found = split_arguments(arguments);
    Split split{.flags = std::move(found.flags), .rest = {}};
    for (const std::size_t i : found.rest) split.rest.push_back(arguments[i]);
    return split;
}

TEST(SplitArguments, accepts_both_forms_and_keeps_the_rest_in_order) {
    const auto [flags, rest] =
        split({"-v", "--nexar-log-level=debug", "in.txt", "--nexar-pool-profile", "inference",
               "--nexar", "--out=x", "last"});
    EXPECT_THAT(rest, ElementsAre("-v", "in.txt", "--nexar", "--out=x", "last"));
    ASSERT_EQ(flags.size(), 2U);
    EXPECT_EQ(flags[0].name, "--nexar-log-level");
    EXPECT_EQ(flags[0].value, "debug");
    EXPECT_EQ(flags[1].name, "--nexar-pool-profile");
    EXPECT_EQ(flags[1].value, "inference");
}

TEST(SplitArguments, stops_at_two_dashes_and_keeps_them) {
    const auto [flags, rest] = split({"--nexar-a=1", "--", "--nexar-b=2", "--", "c"});
    ASSERT_EQ(flags.size(), 1U);
    EXPECT_THAT(rest, ElementsAre("--", "--nexar-b=2", "--", "c"));
}

TEST(SplitArguments, does_not_mistake_a_flag_for_a_value) {
    const auto [flags, rest] = split({"--nexar-a", "--verbose", "--nexar-b", "--", "--nexar-c"});
    ASSERT_EQ(flags.size(), 2U);
    EXPECT_EQ(flags[0].value, std::nullopt);
    EXPECT_EQ(flags[1].value, std::nullopt);
    EXPECT_THAT(rest, ElementsAre("--verbose", "--", "--nexar-c"));
    EXPECT_EQ(split({"--nexar-a"}).flags[0].value, std::nullopt);
}

TEST(SplitArguments, values_may_be_negative_empty_or_hold_an_equals_sign) {
    const auto [flags, rest] = split({"--nexar-a", "-5", "--nexar-b=", "--nexar-c=x=y"});
    ASSERT_EQ(flags.size(), 3U);
    EXPECT_EQ(flags[0].value, "-5");
    EXPECT_EQ(flags[1].value, "");
    EXPECT_EQ(flags[2].name, "--nexar-c");
    EXPECT_EQ(flags[2].value, "x=y");
    EXPECT_THAT(rest, IsEmpty());
}

}  // namespace
}  // namespace nexar
