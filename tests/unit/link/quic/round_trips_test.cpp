#include "link/quic/round_trips.hpp"

#include <gtest/gtest.h>

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint at(Duration time) {
    return TimePoint(time);
}

TEST(RoundTrips, knows_nothing_at_first) {
    const RoundTrips trips;
    EXPECT_EQ(trips.least(), 0ns);
}

TEST(RoundTrips, keeps_the_minimum_for_some_seconds) {
    RoundTrips trips;
    trips.saw(at(100s), 80us);
    trips.saw(at(101s), 60us);
    trips.saw(at(102s), 500us);
    EXPECT_EQ(trips.least(), 60us);
    trips.saw(at(111s), 500us);
    EXPECT_EQ(trips.least(), 60us);
}

TEST(RoundTrips, accepts_a_longer_path_in_the_end) {
    RoundTrips trips;
    trips.saw(at(100s), 100us);
    for (int second = 101; second < 125; ++second) trips.saw(at(second * 1s), 30ms);
    EXPECT_EQ(trips.least(), 30ms);
    EXPECT_FALSE(trips.queued(31ms));
}

TEST(RoundTrips, distinguishes_queueing_from_the_path) {
    RoundTrips trips;
    trips.saw(at(100s), 50us);
    EXPECT_FALSE(trips.queued(140us)) << "that much is noise";
    EXPECT_TRUE(trips.queued(300us));
    trips.saw(at(200s), 20ms);
    trips.saw(at(211s), 20ms);
    EXPECT_FALSE(trips.queued(29ms));
    EXPECT_TRUE(trips.queued(31ms));
}

}  // namespace
}  // namespace nexar::quic
