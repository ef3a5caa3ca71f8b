#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace nexar {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"log_level", "log_rate_limit", "pool_profile",
                                                    "recorder_events"};

TEST(EditDistance, counts_insertions_deletions_replacements_and_swaps) {
    EXPECT_EQ(edit_distance("", ""), 0U);
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance("abc", ""), 3U);
    EXPECT_EQ(edit_distance("level", "levl"), 1U);
    EXPECT_EQ(edit_distance("level", "leevel"), 1U);
    EXPECT_EQ(edit_distance("level", "lebel"), 1U);
    EXPECT_EQ(edit_distance("level", "levle"), 1U);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
    EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // optimal string alignment, not Damerau's 2
}

TEST(EditDistance, ignores_case) {
    EXPECT_EQ(edit_distance("NEXAR_LOG", "nexar_log"), 0U);
    EXPECT_EQ(edit_distance("[", "{"), 1U);
}

TEST(EditDistance, is_the_same_in_both_directions) {
    for (const std::string_view a : kNames) {
        for (const std::string_view b : kNames) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    }
}

TEST(EditDistance, is_bounded_for_long_names) {
    EXPECT_EQ(edit_distance(std::string(100'000, 'x'), "x"), 63U);
    EXPECT_EQ(edit_distance(std::string(100'000, 'x'), std::string(90'000, 'x')), 0U);
}

TEST(Nearest, finds_the_intended_name) {
    EXPECT_EQ(nearest("log_levle", kNames), "log_level");
    EXPECT_EQ(nearest("loglevel", kNames), "log_level");
    EXPECT_EQ(nearest("LOG_RATE", kNames), std::nullopt);
    EXPECT_EQ(nearest("pool_profil", kNames), "pool_profile");
    EXPECT_EQ(nearest("record_events", kNames), "recorder_events");
}

TEST(Nearest, returns_nothing_if_no_name_is_similar) {
    EXPECT_EQ(nearest("bandwidth", kNames), std::nullopt);
    EXPECT_EQ(nearest("", kNames), std::nullopt);
    EXPECT_EQ(nearest("log_level", {}), std::nullopt);
}

TEST(Nearest, returns_the_first_of_equally_similar_names) {
    constexpr std::array<std::string_view, 3> kEquals = {"mode_a", "mode_b", "mode_c"};
    EXPECT_EQ(nearest("mode_x", kEquals), "mode_a");
    EXPECT_EQ(nearest("mode_b", kEquals), "mode_b");
}

}  // namespace
}  // namespace nexar
