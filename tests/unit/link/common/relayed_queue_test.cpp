#include "link/common/relayed_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace nexar::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMost = std::size_t{128} * 1024;
constexpr std::size_t kLargest = 1150;

std::vector<std::byte> datagram(std::size_t bytes, std::size_t number) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 7 + number);
    return made;
}

class Queue : public ::testing::Test {
protected:
    std::size_t fill(std::size_t bytes = kLargest) {
        std::size_t count = 0;
        for (; queue_.room(kLargest) >= bytes; ++count) queue_.push(datagram(bytes, count));
        queue_.advance(now_);
        return count;
    }
    void drain() {
        while (!queue_.empty()) queue_.take(now_);
    }
    /// A link that takes everything once in `interval`.
    void serve(Duration interval, int times) {
        for (int i = 0; i < times; ++i) {
            fill();
            now_ += interval;
            drain();
        }
    }

    TimePoint now_ = TimePoint(seconds(100));
    RelayedQueue queue_{kMost};
};

TEST_F(Queue, returns_datagrams_in_order) {
    const std::size_t count = fill(1000);
    EXPECT_GE(count, 10U);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(queue_.front(), datagram(1000, i));
        EXPECT_EQ(queue_.take(now_), datagram(1000, i));
    }
    EXPECT_TRUE(queue_.empty());
    EXPECT_EQ(queue_.bytes(), 0U);
}

TEST_F(Queue, counts_the_memory_of_small_datagrams) {
    const std::size_t count = fill(1);
    EXPECT_LE(count, RelayedQueue::kLeastLimit / RelayedQueue::kOverheadBytes);
    EXPECT_LE(queue_.bytes(), queue_.limit());
    EXPECT_EQ(queue_.room(kLargest), 0U);
}

TEST_F(Queue, takes_every_datagram_while_it_is_empty) {
    RelayedQueue small(100);
    EXPECT_EQ(small.room(65'000), 65'000U);
    small.push(datagram(65'000, 3));
    EXPECT_EQ(small.room(65'000), 0U);
    small.advance(now_);
    small.take(now_);
    EXPECT_EQ(small.room(65'000), 65'000U);
}

TEST_F(Queue, grows_to_its_limit_while_the_link_is_fast) {
    EXPECT_EQ(queue_.limit(), RelayedQueue::kLeastLimit);
    serve(milliseconds(1), 20);
    EXPECT_EQ(queue_.limit(), kMost);
    fill();
    EXPECT_LE(queue_.bytes(), kMost);
    EXPECT_GT(queue_.bytes(), kMost - 2 * kLargest);
}

TEST_F(Queue, does_not_grow_while_little_waits) {
    for (int i = 0; i < 10'000; ++i) {
        queue_.push(datagram(kLargest, 1));
        queue_.advance(now_);
        queue_.take(now_);
        now_ += milliseconds(1);
    }
    EXPECT_EQ(queue_.limit(), RelayedQueue::kLeastLimit);
}

TEST_F(Queue, shrinks_once_for_each_time_that_datagrams_wait_for_too_long) {
    serve(milliseconds(1), 20);
    ASSERT_EQ(queue_.limit(), kMost);
    serve(milliseconds(11), 1);
    EXPECT_EQ(queue_.limit(), kMost / 2);
    serve(milliseconds(11), 1);
    EXPECT_EQ(queue_.limit(), kMost / 4);
    serve(milliseconds(11), 10);
    EXPECT_EQ(queue_.limit(), RelayedQueue::kLeastLimit);
}

TEST_F(Queue, keeps_the_wait_short_on_a_slow_link) {
    serve(milliseconds(1), 20);
    constexpr std::size_t kBytesPerMs = 3000;  // 24 Mbit/s: the whole queue would take 43 ms
    std::size_t longest_ms = 0;
    std::size_t room = 0;
    for (int ms = 0; ms < 2000; ++ms) {
        fill();
        if (ms >= 200) longest_ms = std::max(longest_ms, queue_.bytes() / kBytesPerMs);
        now_ += milliseconds(1);
        room += kBytesPerMs;
        while (!queue_.empty() && room >= queue_.front().size()) {
            room -= queue_.front().size();
            queue_.take(now_);
        }
        ASSERT_FALSE(queue_.empty()) << "the link is always busy";
    }
    EXPECT_LE(longest_ms, 20U);
}

TEST_F(Queue, forgets_what_waits_when_it_is_cleared) {
    fill();
    queue_.push(datagram(1, 1));
    queue_.clear();
    EXPECT_TRUE(queue_.empty());
    EXPECT_EQ(queue_.bytes(), 0U);
    EXPECT_GE(fill(), 10U);
}

}  // namespace
}  // namespace nexar::link
