#include "runtime/spin.hpp"

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using Next = Spin::Next;

constexpr TimePoint kStart{1s};

void fill(Crowd& crowd) {
    while (!crowd.here()) crowd.saw_away(50us);
}

TEST(crowd, is_here_when_more_than_a_quarter_of_the_offers_are_taken) {
    Crowd crowd;
    EXPECT_FALSE(crowd.here());
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(crowd.saw_away(4us));
        for (int k = 0; k < 2; ++k) EXPECT_FALSE(crowd.saw_away(2us));
    }
    EXPECT_TRUE(crowd.here());
}

TEST(crowd, is_not_here_when_a_quarter_of_the_offers_or_fewer_are_taken) {
    Crowd crowd;
    for (int i = 0; i < 100; ++i) {
        crowd.saw_away(4us);
        for (int k = 0; k < 4; ++k) crowd.saw_away(1us);
        EXPECT_FALSE(crowd.here());
    }
}

TEST(crowd, is_forgotten_when_offers_are_no_longer_taken) {
    Crowd crowd;
    for (int i = 0; i < 1000; ++i) crowd.saw_away(50us);
    int offers = 0;
    while (crowd.here()) {
        crowd.saw_away(1us);
        ++offers;
    }
    EXPECT_LE(offers, 32);
}

TEST(spin, looks_for_its_spin_time_then_offers_and_sleeps_when_no_offer_is_taken) {
    Crowd crowd;
    Spin spin(20us, crowd);
    EXPECT_EQ(spin.next(false, kStart), Next::look);
    EXPECT_EQ(spin.next(false, kStart + 19us), Next::look);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.next(false, kStart + 20us), Next::offer);
        spin.offered(1us);
    }
    EXPECT_EQ(spin.next(false, kStart + 30us), Next::sleep);
    EXPECT_EQ(spin.next(false, kStart + 40us), Next::sleep);
}

TEST(spin, restarts_after_activity) {
    Crowd crowd;
    Spin spin(20us, crowd);
    spin.next(false, kStart);
    for (int i = 0; i < 4; ++i) spin.offered(1us);
    ASSERT_EQ(spin.next(false, kStart + 30us), Next::sleep);
    EXPECT_EQ(spin.next(true, kStart + 1ms), Next::look);
    EXPECT_EQ(spin.next(false, kStart + 1ms + 19us), Next::look);
    EXPECT_EQ(spin.next(false, kStart + 1ms + 20us), Next::offer);
}

TEST(spin, in_a_crowd_offers_at_once_and_continues_while_offers_are_taken) {
    Crowd crowd;
    fill(crowd);
    Spin spin(20us, crowd);
    EXPECT_EQ(spin.next(false, kStart), Next::look);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(spin.next(false, kStart + 1us), Next::offer);
        spin.offered(50us);
    }
    EXPECT_EQ(spin.next(false, kStart + 1us), Next::offer);
    spin.offered(50us);
    EXPECT_EQ(spin.next(false, kStart + 1us), Next::sleep);
}

TEST(spin, sleeps_when_the_thread_that_took_the_processor_kept_it) {
    Crowd crowd;
    fill(crowd);
    Spin spin(20us, crowd);
    spin.next(false, kStart);
    ASSERT_EQ(spin.next(false, kStart), Next::offer);
    spin.offered(3ms);
    EXPECT_EQ(spin.next(false, kStart + 3ms), Next::sleep);
}

}  // namespace
}  // namespace nexar::runtime
