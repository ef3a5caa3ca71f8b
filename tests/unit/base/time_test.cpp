#include "base/time.hpp"

#include <gtest/gtest.h>

namespace nexar {
namespace {

using namespace std::chrono_literals;

TEST(SteadyClock, never_goes_back_and_does_advance) {
    const SteadyClock clock;
    const TimePoint start = clock.now();
    TimePoint last = start;
    while (last < start + 100us) {
        const TimePoint now = clock.now();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(SteadyClock, matches_the_standard_steady_clock) {
    const auto before = std::chrono::steady_clock::now().time_since_epoch();
    const auto between = SteadyClock().now().time_since_epoch();
    const auto after = std::chrono::steady_clock::now().time_since_epoch();
    EXPECT_LE(before, between);
    EXPECT_LE(between, after);
}

TEST(ManualClock, stands_still_until_advanced) {
    ManualClock clock(TimePoint(5s));
    EXPECT_EQ(clock.now(), TimePoint(5s));
    clock.advance(250ms);
    EXPECT_EQ(clock.now(), TimePoint(5250ms));
    clock.advance(0ns);
    EXPECT_EQ(clock.now(), TimePoint(5250ms));
    clock.advance_to(TimePoint(7s + 1ns));
    EXPECT_EQ(clock.now(), TimePoint(7s + 1ns));
}

TEST(ManualClockDeathTest, asserts_when_moved_back) {
    ManualClock clock(TimePoint(5s));
    EXPECT_DEATH(clock.advance(-1ns), "does not go back");
    EXPECT_DEATH(clock.advance_to(TimePoint(5s - 1ns)), "does not go back");
}

}  // namespace
}  // namespace nexar
