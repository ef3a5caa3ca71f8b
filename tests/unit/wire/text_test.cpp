#include "wire/text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "samples.hpp"

namespace nexar::wire {
namespace {

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

TEST(Text, judges_every_code_point) {
    for (std::uint32_t c = 0; c < 0x120000; ++c) {
        const std::string text = "a" + utf8(c) + "b";
        const auto wrong = first_unprintable(text);
        ASSERT_EQ(!wrong.has_value(), should_be_printable(c)) << std::hex << c;
        if (wrong) {
            ASSERT_EQ(*wrong, 1U);
        }
    }
}

TEST(Text, refuses_what_is_no_utf8) {
    for (const char* text :
         {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82",
          "\xe2\x82(", "\xe2(\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe"}) {
        EXPECT_EQ(first_unprintable(text), 0U)
            << testing::to_hex(std::as_bytes(std::span(std::string_view(text))));
    }
    EXPECT_FALSE(first_unprintable(""));
    EXPECT_EQ(first_unprintable(std::string_view("ab\0c", 4)), 2U);
}

TEST(Printable, replaces_what_is_not_allowed_and_keeps_the_rest) {
    EXPECT_EQ(printable("line 1\nline 2\x1b[31m \xc3\xa9\xff", 100),
              "line 1?line 2?[31m \xc3\xa9?");
    EXPECT_EQ(printable("\xe2\x80\xae", 100), "???") << "a right-to-left override";
}

TEST(Printable, cuts_between_characters) {
    EXPECT_EQ(printable("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
    EXPECT_EQ(printable("ab\xe2\x82\xac", 4), "ab");
    EXPECT_EQ(printable("ab\n", 2), "ab");
    EXPECT_EQ(printable("ab", 0), "");
}

TEST(Printable, gives_allowed_text_for_any_bytes) {
    testing::Random random;
    for (int i = 0; i < 10'000; ++i) {
        std::string raw = random.text(40);
        for (const std::byte byte : random.bytes(8)) {
            raw.insert(raw.begin() + static_cast<std::ptrdiff_t>(random.below(raw.size() + 1)),
                       static_cast<char>(byte));
        }
        const std::size_t max = random.below(60);
        const std::string clean = printable(raw, max);
        ASSERT_FALSE(first_unprintable(clean));
        ASSERT_LE(clean.size(), max);
    }
}

}  // namespace
}  // namespace nexar::wire
