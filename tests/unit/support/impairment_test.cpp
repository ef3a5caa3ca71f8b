#include "support/udp_fault/impairment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/seed.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1h};

/// `size` bytes that differ by place and by number; the number stands in the first four.
std::vector<std::byte> content(std::uint32_t number, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + number);
    std::ranges::copy(std::as_bytes(std::span(&number, 1)).first(std::min(size, sizeof number)),
                      bytes.begin());
    return bytes;
}

std::uint32_t number_of(const Datagram& datagram) {
    std::uint32_t number = 0;
    const std::span<const std::byte> bytes(datagram.bytes);
    std::ranges::copy(bytes.first(std::min(bytes.size(), sizeof number)),
                      std::as_writable_bytes(std::span(&number, 1)).begin());
    return number;
}

/// An impairment on virtual time, and what came out of it when.
class Path {
public:
    struct Arrival {
        TimePoint at{};
        Datagram datagram{};
    };

    explicit Path(const FaultOptions& options, std::uint64_t seed = 1,
                  const QueueLimits& limits = {})
        : impairment(options, limits, Random(seed)) {}

    void send(std::uint32_t number, std::size_t size = 1200, std::uint64_t flow = 1) {
        impairment.offer(now, flow, 0, content(number, size));
    }

    /// Moves time on, stopping wherever something is due.
    void run(Duration by) {
        const TimePoint end = now + by;
        while (true) {
            while (auto datagram = impairment.poll(now)) arrived.push_back({now, *datagram});
            const auto next = impairment.next_deadline();
            if (!next || *next > end) break;
            EXPECT_GT(*next, now) << "due, but poll() kept it";
            now = *next;
        }
        now = end;
    }

    std::vector<std::uint32_t> numbers() const {
        std::vector<std::uint32_t> all;
        for (const Arrival& arrival : arrived) all.push_back(number_of(arrival.datagram));
        return all;
    }

    void expect_nothing_unaccounted() const {
        const FaultCounters& c = impairment.counters();
        EXPECT_EQ(c.received + c.duplicated, c.delivered + c.queued + c.dropped + c.burst_dropped +
                                                 c.blackholed + c.oversized + c.overflowed);
        EXPECT_EQ(c.delivered, arrived.size());
    }

    TimePoint now = kStart;
    Impairment impairment;
    std::vector<Arrival> arrived;
};

TEST(Impairment, without_faults_passes_everything_at_once_in_order_and_whole) {
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

TEST(Impairment, delays_by_exactly_the_delay) {
    FaultOptions options;
    options.delay = 750ms;
    Path path(options);
    path.send(1);
    path.run(100ms);
    path.send(2);
    path.run(649999999ns);
    EXPECT_TRUE(path.arrived.empty());
    path.run(1s);
    ASSERT_EQ(path.arrived.size(), 2U);
    EXPECT_EQ(path.arrived[0].at, kStart + 750ms);
    EXPECT_EQ(path.arrived[1].at, kStart + 850ms);
}

TEST(Impairment, jitter_spreads_the_delay_but_keeps_the_order) {
    FaultOptions options;
    options.delay = 10ms;
    options.jitter = 20ms;
    Path path(options, test_seed(1));
    std::vector<std::uint32_t> sent;
    for (std::uint32_t i = 0; i < 500; ++i) {
        path.send(i);
        sent.push_back(i);
        path.run(5ms);
    }
    path.run(1s);
    EXPECT_EQ(path.numbers(), sent);
    Duration least = 1h;
    Duration most{};
    for (const auto& [at, datagram] : path.arrived) {
        const Duration took = at - (kStart + number_of(datagram) * 5ms);
        least = std::min(least, took);
        most = std::max(most, took);
    }
    EXPECT_GE(least, 10ms);
    EXPECT_LT(least, 12ms);
    EXPECT_LT(most, 30ms);
    EXPECT_GT(most, 28ms);
}

TEST(Impairment, losses_are_those_that_the_sequence_of_fates_says) {
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

TEST(Impairment, timing_and_blackholes_do_not_change_who_is_lost_by_chance) {
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

TEST(Impairment, a_held_back_datagram_leaves_behind_the_last_that_overtakes_it) {
    FaultOptions options;
    options.reorder = {.probability = 1, .packets = 2, .at_most = 1s};
    Path path(options);
    path.send(1);
    path.impairment.set_options({});
    for (std::uint32_t i = 2; i < 5; ++i) {
        path.send(i);
        path.run(1ms);
    }
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{2, 3, 1, 4}));
    EXPECT_EQ(path.arrived[2].at, path.arrived[1].at);
    EXPECT_EQ(path.impairment.counters().reordered, 1U);
    EXPECT_FALSE(path.impairment.next_deadline().has_value());
}

TEST(Impairment, a_held_back_datagram_that_nobody_overtakes_leaves_in_time) {
    FaultOptions options;
    options.delay = 1ms;
    options.reorder = {.probability = 1, .packets = 2, .at_most = 10ms};
    Path path(options);
    path.send(1, 1200, 1);
    path.impairment.set_options({});
    path.send(2, 1200, 1);
    // Another flow does not overtake.
    path.send(3, 1200, 2);
    path.send(4, 1200, 2);
    path.run(1s);
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{2, 3, 4, 1}));
    EXPECT_EQ(path.arrived[3].at, kStart + 11ms);
    // And who overtakes later finds nobody.
    path.send(5, 1200, 1);
    path.run(1s);
    EXPECT_EQ(path.numbers().back(), 5U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, holding_back_for_a_time_alone_ignores_who_overtakes) {
    FaultOptions options;
    options.reorder = {.probability = 1, .packets = 0, .at_most = 10ms};
    Path path(options);
    path.send(1);
    path.impairment.set_options({});
    for (std::uint32_t i = 2; i < 30; ++i) {
        path.send(i);
        path.run(1ms);
    }
    const auto numbers = path.numbers();
    EXPECT_EQ(std::ranges::find(numbers, 1U) - numbers.begin(), 10);
}

TEST(Impairment, reordering_by_chance_loses_nothing_and_moves_some) {
    FaultOptions options;
    options.reorder = {.probability = 0.2, .packets = 3, .at_most = 10ms};
    Path path(options, test_seed(4));
    for (std::uint32_t i = 0; i < 5000; ++i) {
        path.send(i, 100, i % 3);
        path.run(100us);
    }
    path.run(1s);
    auto numbers = path.numbers();
    EXPECT_FALSE(std::ranges::is_sorted(numbers));
    std::ranges::sort(numbers);
    for (std::uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(numbers[i], i);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, corruption_flips_so_many_bits_and_nothing_else) {
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

TEST(Impairment, what_is_larger_than_the_path_takes_vanishes) {
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

TEST(Impairment, a_blackhole_counts_from_the_first_datagram_and_anew_with_new_options) {
    FaultOptions options;
    options.blackhole = {.after = 5s, .lasts = 2s, .every = 7s};
    Path path(options);
    path.run(100s);
    const auto passed_in_seconds = [&path](std::uint32_t seconds) {
        path.arrived.clear();
        for (std::uint32_t i = 0; i < seconds; ++i) {
            path.send(i);
            path.run(1s);
        }
        return path.numbers();
    };
    EXPECT_EQ(passed_in_seconds(13), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 7, 8, 9, 10, 11}));
    path.impairment.set_options(options);
    EXPECT_EQ(passed_in_seconds(7), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(Impairment, a_blackhole_on_demand_swallows_what_comes_but_not_what_is_under_way) {
    FaultOptions options;
    options.delay = 10ms;
    Path path(options);
    path.send(1);
    path.impairment.set_blackhole(true);
    path.send(2);
    path.run(1s);
    path.impairment.set_blackhole(false);
    path.send(3);
    path.run(1s);
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{1, 3}));
    EXPECT_EQ(path.impairment.counters().blackholed, 1U);
}

TEST(Impairment, a_line_spaces_datagrams_by_their_time_on_it) {
    FaultOptions options;
    options.rate = {.bytes_per_second = 1'000'000, .queue_bytes = 10'000};
    options.delay = 5ms;
    Path path(options);
    for (std::uint32_t i = 0; i < 4; ++i) path.send(i, 1000);
    path.run(1s);
    path.send(4, 500);
    path.run(1s);
    ASSERT_EQ(path.arrived.size(), 5U);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(path.arrived[i].at, kStart + 5ms + (i + 1) * 1ms);
    }
    EXPECT_EQ(path.arrived[4].at, kStart + 1s + 5ms + 500us) << "an idle line saves nothing up";
}

TEST(Impairment, what_finds_the_queue_of_the_line_full_is_lost_at_the_tail) {
    FaultOptions options;
    options.rate = {.bytes_per_second = 1'000'000, .queue_bytes = 5'000};
    Path path(options);
    for (std::uint32_t i = 0; i < 20; ++i) path.send(i, 1000);
    path.run(1ms);
    path.send(20, 1000);
    path.run(1s);
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 20}));
    EXPECT_EQ(path.impairment.counters().overflowed, 15U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, an_idle_line_takes_even_what_is_larger_than_its_queue) {
    FaultOptions options;
    options.rate = {.bytes_per_second = 1'000'000, .queue_bytes = 0};
    Path path(options);
    path.send(1, 60000);
    path.send(2, 100);
    path.run(1s);
    EXPECT_EQ(path.numbers(), std::vector<std::uint32_t>{1});
    EXPECT_EQ(path.arrived[0].at, kStart + 60ms);
}

TEST(Impairment, a_saturated_line_carries_its_rate) {
    FaultOptions options;
    options.rate = {.bytes_per_second = 3'000'000, .queue_bytes = 100'000};
    Path path(options, test_seed(7));
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < 10000; ++i) {
        path.send(i, 500 + i * 37 % 1000);
        path.run(100us);
    }
    for (const auto& arrival : path.arrived) bytes += arrival.datagram.bytes.size();
    EXPECT_NEAR(static_cast<double>(bytes), 3e6, 3e6 * 0.001);
    EXPECT_GT(path.impairment.counters().overflowed, 1000U);
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
    EXPECT_EQ(by_packets.numbers().back(), 11U) << "what left makes room";
    by_packets.expect_nothing_unaccounted();
}

TEST(Impairment, what_waits_keeps_its_time_when_the_options_change) {
    FaultOptions options;
    options.delay = 100ms;
    Path path(options);
    path.send(1);
    path.impairment.set_options({});
    path.send(2);
    path.run(1s);
    ASSERT_EQ(path.numbers(), (std::vector<std::uint32_t>{1, 2})) << "nothing overtakes";
    EXPECT_EQ(path.arrived[0].at, kStart + 100ms);
}

TEST(Impairment, the_same_seed_gives_the_same_arrivals_with_everything_switched_on) {
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

TEST(FaultCounters, are_described_without_the_zeros) {
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
