#include "run/line_prefixer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "support/seed.hpp"

namespace nexar::run {
namespace {

TEST(LinePrefixerTest, keeps_an_incomplete_line) {
    LinePrefixer prefixer("[1] ");
    std::string out;
    prefixer.take("a", out);
    EXPECT_EQ(out, "");
    prefixer.take("b\n\nc", out);
    EXPECT_EQ(out, "[1] ab\n[1] \n");
    prefixer.finish(out);
    EXPECT_EQ(out, "[1] ab\n[1] \n[1] c\n");
    prefixer.finish(out);
    EXPECT_EQ(out, "[1] ab\n[1] \n[1] c\n");
}

TEST(LinePrefixerTest, splits_a_line_that_is_too_long) {
    LinePrefixer prefixer("> ", 4);
    std::string out;
    prefixer.take("abcd", out);
    EXPECT_EQ(out, "");
    prefixer.take("\nabcde", out);
    EXPECT_EQ(out, "> abcd\n> abcd\n");
    prefixer.take("fghijk\n", out);
    EXPECT_EQ(out, "> abcd\n> abcd\n> efgh\n> ijk\n");
}

TEST(LinePrefixerTest, output_does_not_depend_on_how_the_input_is_split) {
    std::mt19937_64 random(test_seed(3));
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (std::size_t n = random() % 60; text.size() < n;) text += "ab\n"[random() % 3];
        std::string whole;
        LinePrefixer at_once("x", 5);
        at_once.take(text, whole);
        at_once.finish(whole);
        std::string cut;
        LinePrefixer in_pieces("x", 5);
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t n = std::min<std::size_t>(text.size() - at, random() % 4);
            in_pieces.take(std::string_view(text).substr(at, n), cut);
            at += n;
        }
        in_pieces.finish(cut);
        ASSERT_EQ(cut, whole) << text;
    }
}

}  // namespace
}  // namespace nexar::run
