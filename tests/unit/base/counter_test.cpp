#include "base/counter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

namespace nexar {
namespace {

// More threads than there are shards with one writer, so that both kinds of shard take part.
TEST(Counter, loses_nothing_with_more_threads_than_shards) {
    constexpr std::uint64_t kThreads = 40;
    constexpr std::uint64_t kAdditions = 1000;
    Counter counter({.name = "additions"});
    std::latch all_here(kThreads);
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t t = 1; t <= kThreads; ++t) {
            threads.emplace_back([&, t] {
                (void)thread_index();
                all_here.arrive_and_wait();
                for (std::uint64_t i = 0; i < kAdditions; ++i) counter.add(t);
            });
        }
    }
    EXPECT_EQ(counter.value(), kAdditions * kThreads * (kThreads + 1) / 2);
}

// Threads 16, 32 and 48 share a shard, and add to it at the same time.
TEST(Counter, loses_nothing_when_threads_share_a_shard) {
    constexpr int kThreads = 50;
    constexpr std::uint64_t kAdditions = 1000000;
    Counter counter({.name = "additions"});
    std::atomic<std::uint64_t> adding{0};
    std::latch all_here(kThreads);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&] {
                const unsigned index = thread_index();
                const bool adds = index >= 16 && index % 16 == 0;
                if (adds) adding.fetch_add(1);
                all_here.arrive_and_wait();
                for (std::uint64_t i = 0; adds && i < kAdditions; ++i) counter.add(2);
            });
        }
    }
    EXPECT_GE(adding.load(), 3U);
    EXPECT_EQ(counter.value(), adding.load() * kAdditions * 2);
}

TEST(Counter, loses_nothing_when_a_later_thread_reuses_a_shard) {
    Counter counter({.name = "additions"});
    for (std::uint64_t round = 0; round < 20; ++round) {
        std::jthread one([&] { counter.add(round); });
        std::jthread other([&] { counter.add(1000); });
    }
    EXPECT_EQ(counter.value(), 190U + 20000U);
}

TEST(Counter, never_appears_to_decrease) {
    constexpr int kThreads = 4;
    Counter counter({.name = "additions"});
    std::atomic<int> running{kThreads};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 5000; ++i) counter.add(3);
            running.fetch_sub(1);
        });
    }
    std::uint64_t last = 0;
    while (running.load() > 0) {
        const std::uint64_t now = counter.value();
        ASSERT_GE(now, last);
        last = now;
    }
    EXPECT_EQ(counter.value(), std::uint64_t{kThreads} * 5000 * 3);
}

TEST(ShardedSum, subtracts_modulo_two_to_the_64_across_threads) {
    ShardedSum sum;
    sum.add(1000);
    std::jthread([&] { sum.add(std::uint64_t{0} - 400); }).join();
    EXPECT_EQ(sum.value(), 600U);
}

}  // namespace
}  // namespace nexar
