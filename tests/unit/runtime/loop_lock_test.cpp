#include "runtime/loop_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace nexar::runtime {
namespace {

TEST(loop_lock, one_thread_holds_it) {
    LoopLock lock;
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.unlock());
    EXPECT_TRUE(lock.try_lock());
}

TEST(loop_lock, unlock_tells_what_was_posted_while_it_was_held) {
    LoopLock lock;
    ASSERT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.has_posted());
    EXPECT_TRUE(lock.set_posted()) << "held";
    EXPECT_TRUE(lock.has_posted());
    EXPECT_TRUE(lock.unlock());
    EXPECT_TRUE(lock.try_lock());
    EXPECT_TRUE(lock.has_posted()) << "until the holder clears it";
    lock.clear_posted();
    EXPECT_FALSE(lock.unlock());
}

TEST(loop_lock, a_poster_learns_that_it_is_free) {
    LoopLock lock;
    EXPECT_FALSE(lock.set_posted());
    EXPECT_TRUE(lock.try_lock()) << "a posted operation does not lock it";
}

TEST(loop_lock, threads_exclude_each_other_and_none_sleeps_for_ever) {
    constexpr int kThreads = 4;
    constexpr int kRounds = 20'000;
    LoopLock lock;
    long inside = 0;  // guarded by the lock
    std::atomic<long> seen_posted{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < kRounds; ++i) {
                    if (i % 16 == t) lock.set_posted();
                    lock.lock();
                    if (lock.has_posted()) {
                        lock.clear_posted();
                        seen_posted.fetch_add(1, std::memory_order_relaxed);
                    }
                    ++inside;
                    lock.unlock();
                }
            });
        }
    }
    EXPECT_EQ(inside, long{kThreads} * kRounds);
    EXPECT_GT(seen_posted.load(), 0);
}

}  // namespace
}  // namespace nexar::runtime
