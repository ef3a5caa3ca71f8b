#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

struct Value {
    std::uint64_t producer = 0;
    std::uint64_t number = 0;
};

// Not trivial and move-only: a lost value would leak, and one popped twice would crash.
using Boxed = std::unique_ptr<Value>;
using Queue = BoundedQueue<Boxed>;
using Received = std::vector<std::vector<Value>>;  // by consumer

void produce(Queue& queue, std::uint64_t producer, std::uint64_t count, Random random) {
    for (std::uint64_t number = 0; number < count; ++number) {
        auto value = std::make_unique<Value>(Value{.producer = producer, .number = number});
        while (!queue.try_push(std::move(value))) std::this_thread::yield();
        if (random.chance(0.02)) std::this_thread::yield();
    }
}

void consume(Queue& queue, std::atomic<std::uint64_t>& missing, std::vector<Value>& received,
             Random random) {
    while (missing.load(std::memory_order_relaxed) > 0) {
        if (auto value = queue.try_pop()) {
            received.push_back(**value);
            missing.fetch_sub(1, std::memory_order_relaxed);
        } else {
            std::this_thread::yield();
        }
        if (random.chance(0.02)) std::this_thread::yield();
    }
}

Received run(Queue& queue, std::uint64_t producers, std::size_t consumers, std::uint64_t each) {
    Random random(test_seed(21));
    Received received(consumers);
    std::atomic<std::uint64_t> missing{producers * each};
    std::vector<std::jthread> threads;
    for (auto& list : received) {
        threads.emplace_back([&, fork = random.fork()] { consume(queue, missing, list, fork); });
    }
    for (std::uint64_t p = 0; p < producers; ++p) {
        threads.emplace_back([&, p, fork = random.fork()] { produce(queue, p, each, fork); });
    }
    threads.clear();
    return received;
}

void expect_each_once_and_in_order(const Received& received, std::uint64_t producers,
                                   std::uint64_t each) {
    std::vector<std::vector<int>> seen(producers, std::vector<int>(each));
    for (const auto& list : received) {
        std::vector<std::int64_t> last(producers, -1);
        for (const Value& value : list) {
            ++seen[value.producer][value.number];
            const auto number = static_cast<std::int64_t>(value.number);
            EXPECT_GT(number, last[value.producer]) << "producer " << value.producer;
            last[value.producer] = number;
        }
    }
    for (const auto& counts : seen) {
        EXPECT_TRUE(std::ranges::all_of(counts, [](int count) { return count == 1; }));
    }
}

TEST(BoundedQueueConcurrent, loses_and_duplicates_nothing_with_four_producers_and_consumers) {
    for (const std::size_t capacity : {1U, 2U, 3U, 7U, 64U}) {
        Queue queue(capacity);
        const Received received = run(queue, 4, 4, 500);
        expect_each_once_and_in_order(received, 4, 500);
        EXPECT_EQ(queue.size_approx(), 0U);
    }
}

TEST(BoundedQueueConcurrent, keeps_the_order_of_each_producer_for_a_single_consumer) {
    Queue queue(5);
    expect_each_once_and_in_order(run(queue, 4, 1, 1000), 4, 1000);
}

TEST(BoundedQueueConcurrent, survives_the_wrap_around_under_contention) {
    Queue queue(3, std::numeric_limits<std::uint64_t>::max() / 4 - 20);
    expect_each_once_and_in_order(run(queue, 4, 4, 500), 4, 500);
}

TEST(BoundedQueueConcurrent, never_holds_more_than_its_capacity) {
    constexpr std::size_t kCapacity = 3;
    BoundedQueue<int> queue(kCapacity);
    std::atomic<int> pushed{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 100; ++i) {
                    if (queue.try_push(t * 100 + i)) pushed.fetch_add(1);
                }
            });
        }
    }
    EXPECT_EQ(pushed.load(), static_cast<int>(kCapacity));
}

}  // namespace
}  // namespace nexar
