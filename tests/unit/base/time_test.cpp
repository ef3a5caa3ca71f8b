#include "base/time.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace nexar {
namespace {

using namespace std::chrono_literals;

TEST(SteadyClock, never_goes_back_and_does_advance) {
    const SteadyClock clock;
    const TimePoint start = clock.now();
    TimePoint last = start;
    while (last < start + 100ms) {
        const TimePoint now = clock.now();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(SteadyClock, is_never_ahead_of_the_standard_clock_and_hardly_behind) {
    const SteadyClock clock;
    const auto end = std::chrono::steady_clock::now() + 100ms;
    for (auto after = end - 100ms; after < end;) {
        const auto before = std::chrono::steady_clock::now();
        const auto between = clock.now().time_since_epoch();
        after = std::chrono::steady_clock::now();
        ASSERT_LE(between, after.time_since_epoch());
        ASSERT_LE(before.time_since_epoch() - between, 2us);
    }
}

TEST(SteadyClock, reads_the_machines_clock_after_a_pause) {
    const SteadyClock clock;
    for (int i = 0; i < 20; ++i) {
        const TimePoint start = clock.now();
        std::this_thread::sleep_for(1ms);
        EXPECT_GE(clock.now() - start, 1ms - 2us);
    }
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
