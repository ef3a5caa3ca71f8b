#include "support/udp_fault/impairment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "impaired_path.hpp"
#include "support/seed.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;

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

TEST(Impairment, a_held_back_datagram_leaves_after_the_last_that_overtakes_it) {
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

TEST(Impairment, a_held_back_datagram_that_nothing_overtakes_leaves_on_time) {
    FaultOptions options;
    options.delay = 1ms;
    options.reorder = {.probability = 1, .packets = 2, .at_most = 10ms};
    Path path(options);
    path.send(1, 1200, 1);
    path.impairment.set_options({});
    path.send(2, 1200, 1);
    // Datagrams of another flow do not overtake.
    path.send(3, 1200, 2);
    path.send(4, 1200, 2);
    path.run(1s);
    EXPECT_EQ(path.numbers(), (std::vector<std::uint32_t>{2, 3, 4, 1}));
    EXPECT_EQ(path.arrived[3].at, kStart + 11ms);
    // A later datagram finds nothing to overtake.
    path.send(5, 1200, 1);
    path.run(1s);
    EXPECT_EQ(path.numbers().back(), 5U);
    path.expect_nothing_unaccounted();
}

TEST(Impairment, holding_back_by_time_alone_ignores_overtaking) {
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

TEST(Impairment, random_reordering_loses_nothing_and_moves_some) {
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

TEST(Impairment, a_blackhole_is_timed_from_the_first_datagram_and_again_after_new_options) {
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

TEST(Impairment, a_manual_blackhole_drops_new_datagrams_but_not_those_in_flight) {
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

TEST(Impairment, a_line_spaces_datagrams_by_their_transmission_time) {
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
    EXPECT_EQ(path.arrived[4].at, kStart + 1s + 5ms + 500us)
        << "an idle line accumulates no credit";
}

TEST(Impairment, a_full_line_queue_drops_at_the_tail) {
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

TEST(Impairment, an_idle_line_accepts_a_datagram_larger_than_its_queue) {
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

TEST(Impairment, waiting_datagrams_keep_their_time_when_the_options_change) {
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

}  // namespace
}  // namespace nexar::udp_fault
