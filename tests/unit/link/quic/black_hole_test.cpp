#include "link/quic/black_hole.hpp"

#include <gtest/gtest.h>

namespace nexar::quic {
namespace {

using std::chrono::seconds;

constexpr TimePoint after(Duration time) {
    return TimePoint(time);
}

TEST(BlackHole, few_losses_change_nothing) {
    BlackHole hole;
    EXPECT_FALSE(hole.lost(after(seconds(1)), BlackHole::kLossesInRow - 1));
    EXPECT_GT(hole.limit(after(seconds(1))), 65535U);
}

TEST(BlackHole, limits_datagrams_for_a_while_and_then_retries) {
    BlackHole hole;
    EXPECT_TRUE(hole.lost(after(seconds(1)), BlackHole::kLossesInRow));
    EXPECT_TRUE(hole.limited());
    EXPECT_EQ(hole.limit(after(seconds(2))), kLeastDatagram);
    EXPECT_FALSE(hole.lost(after(seconds(2)), 100))
        << "small datagrams are lost too, so size is not the cause";
    EXPECT_GT(hole.limit(after(seconds(3))), 65535U);
}

TEST(BlackHole, retries_at_growing_intervals_while_it_persists) {
    BlackHole hole;
    Duration now = seconds(100);
    Duration before = Duration::zero();
    for (int i = 0; i < 12; ++i) {
        ASSERT_TRUE(hole.lost(after(now), BlackHole::kLossesInRow));
        Duration length = Duration::zero();
        while (hole.limit(after(now + length)) == kLeastDatagram) length += seconds(1);
        EXPECT_GE(length, before);
        before = length;
        now += length + seconds(1);
    }
    EXPECT_EQ(before, std::chrono::minutes(10));
}

TEST(BlackHole, a_new_one_after_a_calm_period_starts_with_a_short_interval) {
    BlackHole hole;
    ASSERT_TRUE(hole.lost(after(seconds(100)), BlackHole::kLossesInRow));
    EXPECT_GT(hole.limit(after(seconds(102))), 65535U);
    ASSERT_TRUE(hole.lost(after(seconds(103)), BlackHole::kLossesInRow));
    EXPECT_GT(hole.limit(after(seconds(107))), 65535U) << "the interval has doubled";
    ASSERT_TRUE(hole.lost(after(seconds(200)), BlackHole::kLossesInRow));
    EXPECT_GT(hole.limit(after(seconds(202))), 65535U);
}

TEST(BlackHole, a_peer_that_was_only_busy_costs_nothing_afterwards) {
    BlackHole hole;
    EXPECT_TRUE(hole.silent(after(seconds(1)), 5));
    EXPECT_FALSE(hole.silent(after(seconds(1)), 5)) << "already known";
    EXPECT_EQ(hole.limit(after(seconds(1))), kLeastDatagram);
    hole.answered(5);
    EXPECT_FALSE(hole.suspected());
    EXPECT_GT(hole.limit(after(seconds(1))), 65535U);
}

TEST(BlackHole, silence_with_losses_is_a_black_hole) {
    BlackHole hole;
    ASSERT_TRUE(hole.silent(after(seconds(1)), 5));
    hole.answered(6);
    EXPECT_FALSE(hole.suspected());
    EXPECT_EQ(hole.limit(after(seconds(2))), kLeastDatagram);
    EXPECT_GT(hole.limit(after(seconds(3))), 65535U);
}

}  // namespace
}  // namespace nexar::quic
