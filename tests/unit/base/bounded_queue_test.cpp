#include "base/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

using Numbers = BoundedQueue<std::uint64_t>;

TEST(BoundedQueue, holds_exactly_its_capacity) {
    for (const std::size_t capacity : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 1000U}) {
        Numbers queue(capacity);
        EXPECT_EQ(queue.capacity(), capacity);
        for (std::uint64_t round = 0; round < 3; ++round) {
            for (std::uint64_t i = 0; i < capacity; ++i) {
                EXPECT_EQ(queue.size_approx(), i);
                ASSERT_TRUE(queue.try_push(round * 10000 + i)) << capacity;
            }
            EXPECT_EQ(queue.size_approx(), capacity);
            EXPECT_FALSE(queue.try_push(99)) << capacity;
            for (std::uint64_t i = 0; i < capacity; ++i) {
                ASSERT_EQ(queue.try_pop(), round * 10000 + i) << capacity;
            }
            EXPECT_EQ(queue.try_pop(), std::nullopt);
            EXPECT_EQ(queue.size_approx(), 0U);
        }
    }
}

TEST(BoundedQueue, leaves_the_value_untouched_when_full) {
    BoundedQueue<std::unique_ptr<int>> queue(1);
    ASSERT_TRUE(queue.try_push(std::make_unique<int>(1)));
    auto second = std::make_unique<int>(2);
    // NOLINTBEGIN(bugprone-use-after-move): the contract keeps the value intact.
    EXPECT_FALSE(queue.try_push(std::move(second)));
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(*second, 2);
    EXPECT_EQ(**queue.try_pop(), 1);
    EXPECT_TRUE(queue.try_push(std::move(second)));
    EXPECT_EQ(second, nullptr);
    // NOLINTEND(bugprone-use-after-move)
    EXPECT_EQ(**queue.try_pop(), 2);
}

TEST(BoundedQueue, copies_values_that_copy_without_throwing) {
    BoundedQueue<std::shared_ptr<int>> queue(2);
    const auto value = std::make_shared<int>(5);
    ASSERT_TRUE(queue.try_push(value));
    EXPECT_EQ(value.use_count(), 2);
    EXPECT_EQ(queue.try_pop(), value);
    EXPECT_EQ(value.use_count(), 1);
}

TEST(BoundedQueue, destroys_each_value_once) {
    const auto counted = std::make_shared<int>(0);
    {
        BoundedQueue<std::shared_ptr<int>> queue(3);
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.try_push(counted));
        EXPECT_EQ(counted.use_count(), 4);
        (void)queue.try_pop();
        EXPECT_EQ(counted.use_count(), 3);
    }
    EXPECT_EQ(counted.use_count(), 1);
}

// Positions are 64-bit words; this queue crosses their end after a few operations.
TEST(BoundedQueue, survives_the_wrap_around_of_its_positions) {
    for (const std::size_t capacity : {1U, 3U, 4U, 6U}) {
        const std::uint64_t lap = std::bit_ceil(capacity + std::uint64_t{1});
        const std::uint64_t last_lap = std::numeric_limits<std::uint64_t>::max() / lap;
        Numbers queue(capacity, last_lap - 1);
        std::deque<std::uint64_t> model;
        Random random(test_seed(11));
        for (std::uint64_t i = 0; i < 200; ++i) {
            if (random.chance(0.6)) {
                const bool fits = model.size() < capacity;
                ASSERT_EQ(queue.try_push(i), fits) << capacity << " at " << i;
                if (fits) model.push_back(i);
            } else if (model.empty()) {
                ASSERT_EQ(queue.try_pop(), std::nullopt) << capacity << " at " << i;
            } else {
                ASSERT_EQ(queue.try_pop(), model.front()) << capacity << " at " << i;
                model.pop_front();
            }
            ASSERT_EQ(queue.size_approx(), model.size()) << capacity << " at " << i;
        }
    }
}

TEST(BoundedQueueDeathTest, asserts_on_an_invalid_capacity) {
    EXPECT_DEATH(Numbers(0), "1 to 2\\^32 values");
    EXPECT_DEATH(Numbers(Numbers::kMaxCapacity + 1), "1 to 2\\^32 values");
}

}  // namespace
}  // namespace nexar
