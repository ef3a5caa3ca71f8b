#include "support/udp_fault/impairment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "impaired_path.hpp"
#include "support/seed.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;

TEST(Impairment, everything_passes_at_once_in_order_and_unchanged_without_faults) {
    Path path({});
    EXPECT_FALSE(path.impairment.next_deadline().has_value());
    path.impairment.offer(path.now, 7, 2, content(3, 65507));
    path.impairment.offer(path.now, 8, 1, {});
    EXPECT_EQ(path.impairment.next_deadline(), kStart);
    path.run(0s);
    ASSERT_EQ(path.arrived.size(), 2U);
    EXPECT_EQ(path.arrived[0].datagram.bytes, content(3, 65507));
    EXPECT_EQ(path.arrived[0].datagram.flow, 7U);
    EXPECT_EQ(path.arrived[0].datagram.ecn, 2);
    EXPECT_TRUE(path.arrived[1].datagram.bytes.empty());
    EXPECT_EQ(path.arrived[1].datagram.ecn, 1);
    EXPECT_FALSE(path.impairment.next_deadline().has_value());
    path.expect_nothing_unaccounted();
}

TEST(Impairment, losses_follow_the_sequence_of_fates) {
    FaultOptions options;
    options.drop.probability = 0.3;
    options.burst = {.start = 0.05, .shortest = 1, .longest = 3};
    const std::uint64_t seed = test_seed(2);
    FateSequence fates(options, Random(seed));
    Path path(options, seed);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        path.send(i);
        const Fate fate = fates.next(1200);
        if (!fate.dropped && !fate.burst_dropped) expected.push_back(i);
        path.run(1ms);
    }
    EXPECT_EQ(path.numbers(), expected);
    EXPECT_GT(path.impairment.counters().dropped, 0U);
    EXPECT_GT(path.impairment.counters().burst_dropped, 0U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, timing_and_blackholes_do_not_change_random_losses) {
    FaultOptions options;
    options.drop.probability = 0.5;
    const std::uint64_t seed = test_seed(3);
    Path calm(options, seed);
    options.blackhole = {.after = 10ms, .lasts = 50ms, .every = 0s};
    options.delay = 3ms;
    Path stormy(options, seed);
    for (std::uint32_t i = 0; i < 200; ++i) {
        calm.send(i);
        stormy.send(i);
        stormy.run(1ms);
    }
    calm.run(1s);
    stormy.run(1s);
    std::vector<std::uint32_t> expected = calm.numbers();
    std::erase_if(expected, [](std::uint32_t i) { return i >= 10 && i < 60; });
    EXPECT_EQ(stormy.numbers(), expected);
    EXPECT_EQ(stormy.impairment.counters().blackholed, 50U);
}

TEST(Impairment, duplicates_are_whole_and_follow_their_original) {
    FaultOptions options;
    options.duplicate = 1;
    options.delay = 1ms;
    Path path(options);
    path.send(5, 100);
    path.send(6, 200);
    path.run(1s);
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{5, 5, 6, 6}));
    EXPECT_EQ(path.arrived[1].datagram.bytes, content(5, 100));
    EXPECT_EQ(path.arrived[3].datagram.bytes, content(6, 200));
    EXPECT_EQ(path.impairment.counters().duplicated, 2U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, corruption_flips_exactly_the_given_number_of_bits) {
    FaultOptions options;
    options.corrupt = {.probability = 1, .bits = 3};
    Path path(options, test_seed(5));
    for (std::uint32_t i = 0; i < 100; ++i) path.send(i, 50);
    path.send(100, 0);
    path.run(0s);
    ASSERT_EQ(path.arrived.size(), 101U);
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto expected = content(i, 50);
        const auto& got = path.arrived[i].datagram.bytes;
        ASSERT_EQ(got.size(), expected.size());
        int flipped = 0;
        for (std::size_t at = 0; at < got.size(); ++at) {
            flipped += std::popcount(std::to_integer<unsigned>(got[at] ^ expected[at]));
        }
        EXPECT_EQ(flipped, 3);
    }
    EXPECT_EQ(path.impairment.counters().corrupted, 100U) << "an empty datagram has no bits";
}

TEST(Impairment, truncation_keeps_the_beginning) {
    FaultOptions options;
    options.truncate = 1;
    Path path(options, test_seed(6));
    for (std::uint32_t i = 0; i < 100; ++i) path.send(i, 40);
    path.run(0s);
    ASSERT_EQ(path.arrived.size(), 100U);
    std::size_t shortest = 40;
    std::size_t longest = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto& got = path.arrived[i].datagram.bytes;
        ASSERT_LT(got.size(), 40U);
        auto expected = content(i, 40);
        expected.resize(got.size());
        EXPECT_EQ(got, expected);
        shortest = std::min(shortest, got.size());
        longest = std::max(longest, got.size());
    }
    EXPECT_LT(shortest, 8U);
    EXPECT_GT(longest, 31U);
    EXPECT_EQ(path.impairment.counters().truncated, 100U);
}

TEST(Impairment, datagrams_too_large_for_the_path_are_lost) {
    FaultOptions options;
    options.largest = 1452;
    Path path(options);
    path.send(1, 1452);
    path.send(2, 1453);
    path.send(3, 9000);
    path.run(0s);
    EXPECT_EQ(path.numbers(), std::vector<std::uint32_t>{1});
    EXPECT_EQ(path.impairment.counters().oversized, 2U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, holds_no_more_than_its_limits) {
    FaultOptions options;
    options.delay = 1s;
    Path by_packets(options, 1, {.packets = 3, .bytes = 1'000'000});
    Path by_bytes(options, 1, {.packets = 1000, .bytes = 5'000});
    for (std::uint32_t i = 0; i < 10; ++i) {
        by_packets.send(i, 1000);
        by_bytes.send(i, i == 4 ? 1001 : 1000);
    }
    EXPECT_EQ(by_packets.impairment.counters().queued, 3U);
    by_packets.run(2s);
    by_bytes.run(2s);
    EXPECT_EQ(by_packets.numbers(), (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(by_bytes.numbers(), (std::vector<std::uint32_t>{0, 1, 2, 3, 5}));
    EXPECT_EQ(by_packets.impairment.counters().overflowed, 7U);
    by_packets.send(11);
    by_packets.run(2s);
    EXPECT_EQ(by_packets.numbers().back(), 11U) << "a departure makes room";
    by_packets.expect_nothing_unaccounted();
}

TEST(Impairment, the_same_seed_gives_the_same_arrivals_with_all_faults_enabled) {
    FaultOptions options;
    options.drop = {.probability = 0.05, .longest_run = 2};
    options.burst = {.start = 0.01, .shortest = 1, .longest = 3};
    options.duplicate = 0.05;
    options.reorder = {.probability = 0.1, .packets = 2, .at_most = 3ms};
    options.delay = 2ms;
    options.jitter = 2ms;
    options.corrupt = {.probability = 0.1, .bits = 4};
    options.truncate = 0.05;
    options.blackhole = {.after = 100ms, .lasts = 20ms, .every = 150ms};
    options.largest = 1300;
    options.rate = {.bytes_per_second = 8'000'000, .queue_bytes = 20'000};
    const std::uint64_t seed = test_seed(8);
    Path first(options, seed);
    Path second(options, seed);
    for (Path* path : {&first, &second}) {
        for (std::uint32_t i = 0; i < 5000; ++i) {
            path->send(i, 900 + i * 13 % 410, i % 2);
            path->run(120us);
        }
        path->run(1s);
        path->expect_nothing_unaccounted();
        EXPECT_EQ(path->impairment.counters().queued, 0U);
    }
    ASSERT_EQ(first.arrived.size(), second.arrived.size());
    for (std::size_t i = 0; i < first.arrived.size(); ++i) {
        EXPECT_EQ(first.arrived[i].at, second.arrived[i].at);
        ASSERT_EQ(first.arrived[i].datagram.bytes, second.arrived[i].datagram.bytes);
    }
    const FaultCounters& c = first.impairment.counters();
    for (const std::uint64_t count :
         {c.dropped, c.burst_dropped, c.blackholed, c.oversized, c.overflowed, c.duplicated,
          c.reordered, c.corrupted, c.truncated}) {
        EXPECT_GT(count, 0U);
    }
}

TEST(FaultCounters, description_omits_zeros) {
    FaultCounters counters;
    EXPECT_EQ(describe(counters), "received 0, delivered 0");
    counters.received = 5;
    counters.delivered = 3;
    counters.burst_dropped = 2;
    counters.truncated = 1;
    EXPECT_EQ(describe(counters), "received 5, delivered 3, burst dropped 2, truncated 1");
}

}  // namespace
}  // namespace nexar::udp_fault
