#include "base/printable.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "support/seed.hpp"

namespace nexar {
namespace {

std::string printed(std::string_view text, std::size_t room) {
    std::array<char, 64> out{};
    const std::size_t n = write_printable(text, std::span(out).first(room));
    return {out.data(), n};
}

std::string utf8(std::uint32_t c) {
    const auto byte = [](std::uint32_t x) { return static_cast<char>(x); };
    if (c < 0x80) return {byte(c)};
    if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
    if (c < 0x10000) {
        return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
    }
    return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 0x3f)), byte(0x80 | (c >> 6 & 0x3f)),
            byte(0x80 | (c & 0x3f))};
}

bool should_be_printable(std::uint32_t c) {
    const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    const bool separator = c == 0x2028 || c == 0x2029;
    const bool bidirectional = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return !control && !surrogate && !separator && !bidirectional && c <= 0x10ffff;
}

TEST(Printable, leaves_ordinary_text_unchanged) {
    EXPECT_EQ(printable("peer 3 at [::1]:4433: late by 5 ms"),
              "peer 3 at [::1]:4433: late by 5 ms");
    EXPECT_EQ(printable("gr\u00fc\u00dfe \u2603 \U0001f600"), "gr\u00fc\u00dfe \u2603 \U0001f600");
    EXPECT_EQ(printable("back\\slash \"quote\""), "back\\slash \"quote\"");
    EXPECT_EQ(printable(""), "");
}

TEST(Printable, escapes_characters_that_could_forge_a_line_or_move_the_cursor) {
    EXPECT_EQ(printable("a\nnexar error b"), "a\\nnexar error b");
    EXPECT_EQ(printable("\r\t"), "\\r\\t");
    EXPECT_EQ(printable("\x1b[2J\x07\x7f"), "\\x1b[2J\\x07\\x7f");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
    EXPECT_EQ(printable("\u0085"), "\\xc2\\x85");         // next line, C1
    EXPECT_EQ(printable("\u009b"), "\\xc2\\x9b");         // CSI, C1
    EXPECT_EQ(printable("\u2028"), "\\xe2\\x80\\xa8");    // line separator
    EXPECT_EQ(printable("\u202ex"), "\\xe2\\x80\\xaex");  // right-to-left override
    EXPECT_EQ(printable("\u2066x"), "\\xe2\\x81\\xa6x");  // isolate
    EXPECT_EQ(printable("\u2027\u202f\u2065\u206a"), "\u2027\u202f\u2065\u206a");  // neighbours
}

TEST(Printable, escapes_bytes_that_are_not_utf8) {
    EXPECT_EQ(printable("\x9b"
                        "2J"),
              "\\x9b2J");                                              // a lone continuation
    EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a");                    // overlong newline
    EXPECT_EQ(printable("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");           // overlong, three bytes
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
    EXPECT_EQ(printable("\xe2\x98"), "\\xe2\\x98");                    // cut off
    EXPECT_EQ(printable("\xe2"
                        "ab"),
              "\\xe2"
              "ab");
    EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
}

TEST(Printable, truncates_between_characters_and_marks_it) {
    EXPECT_EQ(printed("abcdef", 6), "abcdef");
    EXPECT_EQ(printed("abcdefg", 6), "abc...");
    EXPECT_EQ(printed("ab\u2603cd", 6), "ab...");
    EXPECT_EQ(printed("abc\n\n", 6), "abc...");
    EXPECT_EQ(printed("\n\n\n\n", 7), "\\n\\n...");
    EXPECT_EQ(printed("abcd", 3), "...");
    EXPECT_EQ(printed("abc", 3), "abc");
    EXPECT_EQ(printable(std::string(5000, 'x')), std::string(509, 'x') + "...");
}

TEST(Printable, in_quotes_quotes_and_truncates) {
    EXPECT_EQ(in_quotes("debug"), "\"debug\"");
    EXPECT_EQ(in_quotes(""), "\"\"");
    EXPECT_EQ(in_quotes(std::string(64, 'x')), '"' + std::string(64, 'x') + '"');
    EXPECT_EQ(in_quotes(std::string(65, 'x')), '"' + std::string(61, 'x') + "...\"");
}

TEST(Printable, never_lets_a_control_byte_through) {
    std::mt19937_64 random(test_seed(2));
    for (int i = 0; i < 20'000; ++i) {
        std::string text(random() % 40, '\0');
        for (char& c : text) c = static_cast<char>(random());
        const std::size_t room = 3 + random() % 62;
        const std::string shown = printed(text, room);
        ASSERT_LE(shown.size(), room);
        for (const char c : shown) {
            const auto byte = static_cast<unsigned char>(c);
            ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << static_cast<int>(byte);
        }
        // Printing the result again changes nothing: it is valid and harmless.
        ASSERT_EQ(printed(shown, 64), shown);
        ASSERT_EQ(first_unprintable(shown), std::nullopt);
    }
}

TEST(FirstUnprintable, classifies_every_code_point) {
    for (std::uint32_t c = 0; c < 0x120000; ++c) {
        const std::string text = "a" + utf8(c) + "b";
        const auto wrong = first_unprintable(text);
        ASSERT_EQ(!wrong.has_value(), should_be_printable(c)) << std::hex << c;
        if (wrong) {
            ASSERT_EQ(*wrong, 1U);
        }
    }
}

TEST(FirstUnprintable, finds_invalid_utf8) {
    for (const char* text :
         {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82",
          "\xe2\x82(", "\xe2(\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe"}) {
        EXPECT_EQ(first_unprintable(text), 0U) << printable(text);
    }
    EXPECT_FALSE(first_unprintable(""));
    EXPECT_EQ(first_unprintable(std::string_view("ab\0c", 4)), 2U);
}

}  // namespace
}  // namespace nexar
