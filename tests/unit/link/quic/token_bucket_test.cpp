#include "link/quic/token_bucket.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1000s};

TEST(TokenBucket, allows_its_burst_at_once_and_then_its_rate) {
    TokenBucket bucket(100, 5);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(bucket.take(kStart));
    EXPECT_FALSE(bucket.take(kStart));
    EXPECT_FALSE(bucket.take(kStart + 9ms));
    EXPECT_TRUE(bucket.take(kStart + 11ms));
    EXPECT_FALSE(bucket.take(kStart + 11ms));
    EXPECT_TRUE(bucket.take(kStart + 1s, 5)) << "never more than the burst, however long";
    EXPECT_FALSE(bucket.take(kStart + 1s));
}

TEST(TokenBucket, takes_all_or_nothing) {
    TokenBucket bucket(1, 10);
    EXPECT_FALSE(bucket.take(kStart, 11));
    EXPECT_TRUE(bucket.has(kStart, 10));
    EXPECT_TRUE(bucket.take(kStart, 10));
    bucket.give(3);
    EXPECT_TRUE(bucket.take(kStart, 3));
    bucket.give(100);
    EXPECT_FALSE(bucket.has(kStart, 10.5)) << "returned units do not exceed the burst";
}

TEST(TokenBucket, time_that_stops_or_goes_back_adds_nothing) {
    TokenBucket bucket(1000, 1);
    EXPECT_TRUE(bucket.take(kStart));
    EXPECT_FALSE(bucket.take(kStart));
    EXPECT_FALSE(bucket.take(kStart - 1h));
    EXPECT_FALSE(bucket.take(kStart));
}

TEST(TokenBucket, never_lets_more_pass_than_burst_plus_rate) {
    Random random(test_seed(8));
    TokenBucket bucket(500, 20);
    TimePoint now = kStart;
    double passed = 0;
    for (int i = 0; i < 200'000; ++i) {
        now += Duration(static_cast<Duration::rep>(random.below(400'000)));
        if (bucket.take(now)) ++passed;
        ASSERT_LE(passed, 20 + 500 * std::chrono::duration<double>(now - kStart).count() + 1e-3);
    }
    EXPECT_GE(passed, 490 * std::chrono::duration<double>(now - kStart).count());
}

}  // namespace
}  // namespace nexar::quic
