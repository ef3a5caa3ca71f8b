#include "runtime/completion_waiter.hpp"

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

TEST(waiter, sleeps_until_its_deadline) {
    Waiter waiter;
    const TimePoint deadline = SteadyClock{}.now() + 2ms;
    waiter.sleep(deadline);
    EXPECT_GE(SteadyClock{}.now(), deadline);
    EXPECT_FALSE(waiter.told());
    EXPECT_FALSE(waiter.granted());
}

TEST(waiter, does_not_sleep_when_it_was_told_or_granted) {
    Waiter told;
    told.tell();
    told.sleep(std::nullopt);
    EXPECT_TRUE(told.told());
    Waiter granted;
    granted.grant();
    granted.sleep(std::nullopt);
    EXPECT_TRUE(granted.granted());
    EXPECT_FALSE(granted.told());
}

TEST(waiter, counts_how_often_it_was_told_and_says_whether_it_drives) {
    Waiter waiter;
    EXPECT_FALSE(waiter.tell().drives);
    waiter.grant();
    EXPECT_TRUE(waiter.tell().drives);
    waiter.clear_grant();
    const auto told = waiter.tell();
    EXPECT_FALSE(told.drives);
    EXPECT_EQ(told.sleeper, nullptr);  // it is awake: no system call
    EXPECT_EQ(waiter.told_count(), 3U);
    waiter.await_told(3);
}

}  // namespace
}  // namespace nexar::runtime
