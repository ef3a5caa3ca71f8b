#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/buffer_pool.hpp"
#include "base/random.hpp"
#include "counting_memory.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr int kPoolThreads = 4;

PoolProfile small_shelves() {
    return *PoolProfileBuilder().tier("small", 16 * kKiB, 5).tier("large", 64 * kKiB, 3).build();
}

// Fills the whole buffer with a stamp, to detect a block that two threads hold at once.
class Stamped {
public:
    Stamped() = default;
    Stamped(PooledBuffer buffer, std::uint64_t seed) : buffer_(std::move(buffer)), seed_(seed) {
        for_each_word(
            [](std::byte* at, std::uint64_t word) { std::memcpy(at, &word, sizeof word); });
    }

    bool intact() {
        bool equal = true;
        for_each_word([&equal](std::byte* at, std::uint64_t word) {
            equal = equal && std::memcmp(at, &word, sizeof word) == 0;
        });
        return equal;
    }

private:
    template <class Visit>
    void for_each_word(Visit visit) {
        SplitMix64 words(seed_);
        for (std::size_t at = 0; at + 8 <= buffer_.size(); at += 8) {
            visit(buffer_.data() + at, words.next());
        }
    }

    PooledBuffer buffer_;
    std::uint64_t seed_ = 0;
};

// Checks buffers out, holds a few, and returns its own or those that another thread handed over.
class Worker {
public:
    Worker(BufferPool& pool, BoundedQueue<Stamped>& exchange, Random random)
        : pool_(pool), exchange_(exchange), random_(random) {}

    void work(int steps) {
        for (int i = 0; i < steps; ++i) {
            if (held_.size() < 4 && random_.chance(0.5)) {
                auto buffer = pool_.checkout(random_.below(80 * kKiB)).value();
                held_.emplace_back(std::move(buffer), random_.next());
                ++checkouts;
            } else if (!held_.empty()) {
                let_go(random_.below(held_.size()));
            }
            if (random_.chance(0.2)) {
                if (auto other = exchange_.try_pop()) check(*other);
            }
            if (random_.chance(0.01)) pool_.trim();
        }
        while (!held_.empty()) let_go(0);
    }

    std::uint64_t checkouts = 0;
    std::uint64_t damaged = 0;

private:
    void check(Stamped& stamped) { damaged += stamped.intact() ? 0U : 1U; }

    void let_go(std::size_t which) {
        std::swap(held_[which], held_.back());
        check(held_.back());
        // If the exchange is full, this thread returns the buffer itself.
        if (random_.chance(0.3)) (void)exchange_.try_push(std::move(held_.back()));
        held_.pop_back();
    }

    BufferPool& pool_;
    BoundedQueue<Stamped>& exchange_;
    Random random_;
    std::vector<Stamped> held_;
};

TEST(BufferPoolConcurrent, never_hands_out_a_block_twice_and_totals_add_up) {
    CountingMemory memory;
    BufferPool pool(small_shelves(), memory);
    Random random(test_seed(41));
    std::uint64_t checkouts = 0;
    {
        BoundedQueue<Stamped> exchange(3);
        std::vector<Worker> workers;
        for (int t = 0; t < kPoolThreads; ++t) workers.emplace_back(pool, exchange, random.fork());
        {
            std::vector<std::jthread> threads;
            for (Worker& worker : workers) threads.emplace_back([&worker] { worker.work(400); });
        }
        for (const Worker& worker : workers) {
            EXPECT_EQ(worker.damaged, 0U);
            checkouts += worker.checkouts;
        }
    }
    const PoolStatistics now = pool.statistics();
    EXPECT_EQ(now.total.hits + now.total.misses, checkouts);
    EXPECT_EQ(now.total.bytes_in_use, 0U);
    EXPECT_EQ(now.total.bytes_held, memory.bytes());
    EXPECT_LE(now.tiers[0].usage.bytes_held, 5 * 16 * kKiB);
    EXPECT_LE(now.tiers[1].usage.bytes_held, 3 * 64 * kKiB);
    EXPECT_EQ(pool.trim(), now.total.bytes_held);
    EXPECT_EQ(memory.blocks(), 0);
}

TEST(BufferPoolConcurrent, trims_while_others_check_out) {
    CountingMemory memory;
    BufferPool pool(small_shelves(), memory);
    std::atomic<int> running{kPoolThreads};
    std::atomic<std::uint64_t> damaged{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kPoolThreads; ++t) {
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < 300; ++i) {
                Stamped stamped(pool.checkout(100 + i % 3 * 8000).value(),
                                i * kPoolThreads + static_cast<std::uint64_t>(t));
                if (!stamped.intact()) damaged.fetch_add(1);
            }
            running.fetch_sub(1);
        });
    }
    std::size_t trimmed = 0;
    while (running.load() > 0) trimmed += pool.trim();
    threads.clear();
    trimmed += pool.trim();
    EXPECT_GT(trimmed, 0U);
    EXPECT_EQ(damaged.load(), 0U);
    EXPECT_EQ(memory.blocks(), 0);
    EXPECT_EQ(pool.statistics().total.bytes_in_use, 0U);
}

// A reused block may show old data, but its new owner must not race with the previous one.
// ThreadSanitizer checks this here.
TEST(BufferPoolConcurrent, synchronises_the_previous_owner_with_the_next) {
    BufferPool pool(*PoolProfileBuilder().tier("one", 4 * kKiB, 1).build());
    std::vector<std::jthread> threads;
    std::atomic<std::uint64_t> sum{0};
    for (int t = 0; t < kPoolThreads; ++t) {
        threads.emplace_back([&] {
            for (unsigned i = 0; i < 500; ++i) {
                PooledBuffer buffer = pool.checkout_zeroed(64).value();
                buffer.data()[i % 64] = std::byte{1};
                std::uint64_t set = 0;
                for (const std::byte b : buffer.span()) set += std::to_integer<std::uint64_t>(b);
                sum.fetch_add(set);
            }
        });
    }
    threads.clear();
    EXPECT_EQ(sum.load(), std::uint64_t{kPoolThreads} * 500);
}

TEST(BufferPoolConcurrent, statistics_are_plausible_during_use) {
    BufferPool pool(small_shelves());
    std::atomic<int> running{2};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < 500; ++i)
                (void)pool.checkout(i * 100 % (40 * kKiB)).value();
            running.fetch_sub(1);
        });
    }
    while (running.load() > 0) {
        const PoolStatistics now = pool.statistics();
        // At most one buffer per thread is checked out, and a difference must not wrap around.
        EXPECT_LE(now.total.bytes_in_use + now.total.bytes_held, 5 * 16 * kKiB + 5 * 64 * kKiB);
    }
}

}  // namespace
}  // namespace nexar
