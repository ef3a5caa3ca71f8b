#include "security/wall_time.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace nexar::security {
namespace {

using namespace std::chrono_literals;

TEST(WallTime, is_formatted_as_iso_8601) {
    EXPECT_EQ(in_words(wall_time(0)), "1970-01-01T00:00:00Z");
    EXPECT_EQ(in_words(wall_time(1777863721)), "2026-05-04T03:02:01Z");
    EXPECT_EQ(in_words(wall_time(-1)), "1969-12-31T23:59:59Z");
}

TEST(WallTime, clamps_years_that_a_certificate_may_contain) {
    constexpr std::time_t kYear9999 = 253402300799;
    EXPECT_GT(wall_time(kYear9999), wall_time(9'000'000'000));
    EXPECT_EQ(wall_time(kYear9999), wall_time(std::numeric_limits<std::time_t>::max()));
    EXPECT_LT(wall_time(std::numeric_limits<std::time_t>::min()), wall_time(0));
    EXPECT_EQ(in_words(wall_time(kYear9999)).substr(0, 4), "2262");
}

TEST(WallTime, formats_spans_in_their_largest_unit) {
    EXPECT_EQ(in_words(0s), "0 s");
    EXPECT_EQ(in_words(119s), "119 s");
    EXPECT_EQ(in_words(11min + 59s), "11 min");
    EXPECT_EQ(in_words(47h), "47 h");
    EXPECT_EQ(in_words(49h), "2 days");
}

}  // namespace
}  // namespace nexar::security
