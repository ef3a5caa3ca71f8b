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

TEST(crowd, recognises_short_absences_once_it_knows_how_long_a_refused_offer_takes) {
    Crowd crowd;
    EXPECT_FALSE(crowd.saw_away(1500ns));
    EXPECT_FALSE(crowd.saw_away(350ns));
    EXPECT_TRUE(crowd.saw_away(1500ns));
    EXPECT_FALSE(crowd.saw_away(0ns));
    EXPECT_FALSE(crowd.saw_away(600ns)) << "clocks are coarse";
    EXPECT_TRUE(crowd.saw_away(1000ns));
}

TEST(crowd, is_here_while_ranks_outnumber_processors) {
    Crowd crowd;
    crowd.set_outnumbered(true);
    for (int i = 0; i < 100; ++i) crowd.saw_away(1us);
    EXPECT_TRUE(crowd.here());
    crowd.set_outnumbered(false);
    EXPECT_FALSE(crowd.here());
}

TEST(spin, looks_for_its_spin_time_then_offers_and_sleeps_when_no_offer_is_taken) {
    Crowd crowd;
    Spin spin(20us, crowd);
    EXPECT_EQ(spin.next(false, kStart), Next::look);
    EXPECT_EQ(spin.next(false, kStart + 19us), Next::look);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.next(false, kStart + 20us), Next::offer);
        spin.offered(kStart + 20us, 1us);
    }
    EXPECT_EQ(spin.next(false, kStart + 30us), Next::sleep);
    EXPECT_EQ(spin.next(false, kStart + 40us), Next::sleep);
}

TEST(spin, offers_now_and_then_within_its_budget) {
    Crowd crowd;
    Spin spin(100us, crowd);
    TimePoint now = kStart;
    EXPECT_EQ(spin.next(false, now), Next::look);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.look_until(), now + 20us);
        EXPECT_EQ(spin.next(false, now + 19us), Next::look);
        now += 20us;
        EXPECT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, 1us);
        now += 1us;
        EXPECT_EQ(spin.next(false, now), Next::look) << "nobody took the processor";
    }
    EXPECT_EQ(spin.look_until(), kStart + 100us);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.next(false, kStart + 100us), Next::offer);
        spin.offered(kStart + 100us, 1us);
    }
    EXPECT_EQ(spin.next(false, kStart + 101us), Next::sleep);
}

TEST(spin, yields_in_a_crowd_for_a_while_even_if_no_other_thread_runs) {
    Crowd crowd;
    crowd.set_outnumbered(true);
    Spin spin(60s, crowd);
    spin.next(false, kStart);
    for (auto now = kStart + 1us; now < kStart + 100us; now += 1us) {
        ASSERT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, 300ns);
    }
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.next(false, kStart + 100us), Next::offer);
        spin.offered(kStart + 100us, 300ns);
    }
    EXPECT_EQ(spin.next(false, kStart + 101us), Next::sleep);
}

TEST(spin, within_its_budget_notices_a_crowd) {
    Crowd crowd;
    Spin spin(1ms, crowd);
    spin.next(false, kStart);
    TimePoint now = kStart + 20us;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, 10us);
        now += 10us;
    }
    EXPECT_TRUE(crowd.here());
    EXPECT_LT(spin.look_until(), now);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, 1us);
    }
    EXPECT_EQ(spin.next(false, now), Next::sleep);
}

TEST(spin, that_must_not_sleep_offers_now_and_then_and_always_in_a_crowd) {
    Crowd crowd;
    Spin spin(0us, crowd, Waiting::spin);
    TimePoint now = kStart;
    EXPECT_EQ(spin.next(false, now), Next::look);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(spin.next(false, now), Next::look);
        now += 20us;
        EXPECT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, 0us);
    }
    crowd.set_outnumbered(true);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(spin.next(false, now), Next::offer);
        spin.offered(now, i % 2 == 0 ? 1us : 50us);
    }
}

TEST(spin, that_must_not_spin_sleeps_after_the_first_turn_without_activity) {
    Crowd crowd;
    Spin spin(1s, crowd, Waiting::sleep);
    EXPECT_LT(spin.look_until(), kStart);
    EXPECT_EQ(spin.next(true, kStart), Next::look);
    EXPECT_EQ(spin.next(false, kStart), Next::sleep);
    EXPECT_EQ(spin.next(false, kStart), Next::sleep);
}

TEST(spin, restarts_after_activity) {
    Crowd crowd;
    Spin spin(20us, crowd);
    spin.next(false, kStart);
    for (int i = 0; i < 4; ++i) spin.offered(kStart + 20us, 1us);
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
        spin.offered(kStart, 50us);
    }
    EXPECT_EQ(spin.next(false, kStart + 1us), Next::offer);
    spin.offered(kStart, 50us);
    EXPECT_EQ(spin.next(false, kStart + 1us), Next::sleep);
}

TEST(spin, sleeps_when_the_thread_that_took_the_processor_kept_it) {
    Crowd crowd;
    fill(crowd);
    Spin spin(20us, crowd);
    spin.next(false, kStart);
    ASSERT_EQ(spin.next(false, kStart), Next::offer);
    spin.offered(kStart, 3ms);
    EXPECT_EQ(spin.next(false, kStart + 3ms), Next::sleep);
}

}  // namespace
}  // namespace nexar::runtime
