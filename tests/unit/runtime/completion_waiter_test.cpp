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

TEST(waiter, does_not_sleep_after_tell_or_grant) {
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

TEST(waiter, counts_tells_and_needs_no_system_call_while_it_is_awake) {
    Waiter waiter;
    EXPECT_EQ(waiter.tell(), nullptr);
    EXPECT_EQ(waiter.grant(), nullptr);
    EXPECT_TRUE(waiter.granted());
    EXPECT_EQ(waiter.tell(), nullptr);
    waiter.clear_grant();
    EXPECT_FALSE(waiter.granted());
    EXPECT_EQ(waiter.tell(), nullptr);
    EXPECT_EQ(waiter.told_count(), 3U);
    waiter.await_told(3);
}

}  // namespace
}  // namespace nexar::runtime
