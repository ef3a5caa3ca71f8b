#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <thread>
#include <vector>

#include "base/pool_shelf.hpp"
#include "page_blocks.hpp"

namespace nexar {
namespace {

// Holds the block long enough for another thread to get it as well; true if one did.
bool seen_by_another(std::atomic<int>& holder) {
    bool alone = holder.fetch_add(1) == 0;
    for (int i = 0; i < 50; ++i) alone = alone && holder.load() == 1;
    holder.fetch_sub(1);
    return !alone;
}

// Takes and puts the blocks of an initially full shelf from several threads. Returns how often a
// thread got a block that another one held.
int times_shared(PoolShelf& shelf, const PageBlocks& blocks, int rounds) {
    constexpr int kThreads = 4;
    std::vector<std::atomic<int>> holders(shelf.places());
    std::atomic<int> shared{0};
    std::latch all_here(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            all_here.arrive_and_wait();
            for (int i = 0; i < rounds && shared.load() == 0; ++i) {
                std::byte* const block = shelf.take(2);
                if (block == nullptr) continue;
                if (seen_by_another(holders[blocks.index_of(block)])) shared.fetch_add(1);
                // A search visits each place once and misses one that becomes free behind it.
                while (!shelf.put(block, 2) && shared.load() == 0) std::this_thread::yield();
            }
        });
    }
    threads.clear();
    return shared.load();
}

TEST(PoolShelfConcurrent, gives_each_block_to_one_thread_at_a_time) {
    for (const std::size_t places : {1U, 3U}) {
        const PageBlocks blocks(places);
        PoolShelf shelf(places);
        for (std::size_t i = 0; i < places; ++i) ASSERT_TRUE(shelf.put(blocks[i], 2));
        EXPECT_EQ(times_shared(shelf, blocks, 100000), 0) << places;
        EXPECT_EQ(shelf.bytes(), places * class_bytes(2)) << places;
    }
}

}  // namespace
}  // namespace nexar
