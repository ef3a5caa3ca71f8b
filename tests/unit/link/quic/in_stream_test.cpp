#include "link/quic/in_stream.hpp"

#include <gtest/gtest.h>

#include "base/pool_profile.hpp"
#include "base/random.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::CollectingSink;
using nexar::testing::pattern;

class InStreamTest : public ::testing::Test {
protected:
    BufferPool pool_{PoolProfile::inference()};
    InStream stream_{port::StreamId(14), 14, pool_};
    CollectingSink sink_;
};

TEST_F(InStreamTest, passes_bytes_on_without_keeping_them) {
    stream_.attach(sink_);
    const auto bytes = pattern(1, 3000);
    EXPECT_EQ(stream_.arrived(bytes).value(), 3000U);
    EXPECT_EQ(sink_.bytes, bytes);
    EXPECT_EQ(stream_.parked(), 0U);
    EXPECT_EQ(pool_.statistics().total.misses, 0U) << "no memory was allocated";
    EXPECT_FALSE(stream_.finished());
    stream_.ended();
    EXPECT_TRUE(stream_.finished());
    EXPECT_EQ(stream_.taken(), 3000U);
}

TEST_F(InStreamTest, keeps_bytes_that_arrive_before_its_sink) {
    EXPECT_EQ(stream_.arrived(pattern(1, 100)).value(), 0U);
    stream_.ended();
    EXPECT_FALSE(stream_.finished());
    EXPECT_EQ(stream_.retry(), 0U);
    stream_.attach(sink_);
    EXPECT_EQ(stream_.retry(), 100U);
    EXPECT_EQ(sink_.bytes, pattern(1, 100));
    EXPECT_TRUE(stream_.finished());
}

TEST_F(InStreamTest, keeps_the_order_whatever_amount_the_sink_takes) {
    Random random(test_seed(11));
    stream_.attach(sink_);
    sink_.allowance = 0;
    std::vector<std::byte> all;
    std::uint64_t taken = 0;
    for (int i = 0; i < 2000; ++i) {
        sink_.allowance = sink_.bytes.size() + random.below(4000);
        if (random.chance(0.6)) {
            const auto bytes = pattern(random.next(), random.below(5000));
            all.insert(all.end(), bytes.begin(), bytes.end());
            taken += stream_.arrived(bytes).value();
        } else {
            taken += stream_.retry();
        }
        ASSERT_EQ(stream_.taken(), taken);
        ASSERT_EQ(sink_.bytes.size(), taken);
        ASSERT_EQ(stream_.parked(), all.size() - taken);
    }
    sink_.allowance = CollectingSink::kUnlimited;
    stream_.retry();
    EXPECT_TRUE(sink_.bytes == all);
    EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
}

TEST_F(InStreamTest, an_abandoned_stream_drops_everything) {
    EXPECT_EQ(stream_.arrived(pattern(1, 700)).value(), 0U);
    stream_.attach(sink_);
    EXPECT_EQ(stream_.abandon(), 700U);
    EXPECT_TRUE(stream_.abandoned());
    EXPECT_EQ(stream_.arrived(pattern(2, 50)).value(), 50U)
        << "counted as taken, so that credit is returned";
    EXPECT_EQ(stream_.retry(), 0U);
    EXPECT_TRUE(sink_.bytes.empty());
    EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
}

TEST(WindowTuner, doubles_while_half_of_it_is_consumed_within_a_round_trip) {
    WindowTuner tuner(1000, 6000);
    TimePoint now{100s};
    EXPECT_EQ(tuner.consumed(now, 400, 10ms), 0U);
    now += 8ms;
    EXPECT_EQ(tuner.consumed(now, 200, 10ms), 1000U);
    EXPECT_EQ(tuner.window(), 2000U);
    EXPECT_EQ(tuner.consumed(now + 9ms, 1000, 10ms), 2000U);
    EXPECT_EQ(tuner.consumed(now + 18ms, 2000, 10ms), 2000U) << "up to its limit";
    EXPECT_EQ(tuner.window(), 6000U);
    EXPECT_EQ(tuner.consumed(now + 19ms, 6000, 10ms), 0U);
}

TEST(WindowTuner, leaves_a_slow_stream_alone) {
    WindowTuner tuner(1000, 100'000);
    TimePoint now{100s};
    for (int i = 0; i < 100; ++i) {
        now += 12ms;
        EXPECT_EQ(tuner.consumed(now, i == 0 ? 1 : 500, 10ms), 0U);
    }
    EXPECT_EQ(tuner.window(), 1000U);
}

}  // namespace
}  // namespace nexar::quic
