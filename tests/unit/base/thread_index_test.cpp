#include "base/thread_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

namespace nexar {
namespace {

// The index of each of `count` threads that are all alive at the same time; fewer if the system
// does not allow that many.
std::vector<unsigned> indexes_of(std::size_t count) {
    std::vector<unsigned> indexes(count);
    std::atomic<std::size_t> asked{0};
    std::atomic<bool> leave{false};
    std::vector<std::jthread> threads;
    try {
        for (std::size_t i = 0; i < count; ++i) {
            threads.emplace_back([&, i] {
                indexes[i] = thread_index();
                asked.fetch_add(1);
                leave.wait(false);
            });
        }
    } catch (const std::system_error&) {
        indexes.resize(threads.size());
    }
    while (asked.load() < threads.size()) std::this_thread::yield();
    leave = true;
    leave.notify_all();
    return indexes;
}

TEST(ThreadIndex, stays_the_same_for_a_thread) {
    EXPECT_EQ(thread_index(), thread_index());
}

TEST(ThreadIndex, differs_between_live_threads_and_is_small) {
    const unsigned mine = thread_index();  // held while the others ask
    const std::vector<unsigned> indexes = indexes_of(20);
    ASSERT_EQ(indexes.size(), 20U);
    const std::set<unsigned> different(indexes.begin(), indexes.end());
    EXPECT_EQ(different.size(), 20U);
    EXPECT_LE(*different.rbegin(), 20U);
    EXPECT_FALSE(different.contains(mine));
}

TEST(ThreadIndex, is_reused_after_its_thread_ends) {
    (void)thread_index();
    unsigned first = kThreadIndexes;
    unsigned second = kThreadIndexes;
    std::jthread([&] { first = thread_index(); }).join();
    std::jthread([&] { second = thread_index(); }).join();
    EXPECT_LT(first, kThreadIndexes);
    EXPECT_EQ(first, second);
}

TEST(ThreadIndex, is_shared_only_beyond_the_last_number) {
    const unsigned own = thread_index();
    const std::vector<unsigned> indexes = indexes_of(kThreadIndexes + 10);
    if (indexes.size() < kThreadIndexes + 10) GTEST_SKIP() << "the system allows too few threads";
    const std::set<unsigned> different(indexes.begin(), indexes.end());
    EXPECT_FALSE(different.contains(own));
    EXPECT_EQ(std::ranges::count(indexes, kThreadIndexes), 11);
    EXPECT_EQ(different.size(), kThreadIndexes);
}

struct AsksWhenItEnds {
    std::atomic<unsigned>* answer = nullptr;
    ~AsksWhenItEnds() {
        if (answer != nullptr) answer->store(thread_index());
    }
};

TEST(ThreadIndex, is_none_for_a_thread_that_has_returned_its_number) {
    std::atomic<unsigned> while_ending{0};
    std::jthread([&] {
        // Constructed before the thread gets its number, so destroyed after the number is returned.
        thread_local AsksWhenItEnds last;
        last.answer = &while_ending;
        EXPECT_LT(thread_index(), kThreadIndexes);
    }).join();
    EXPECT_EQ(while_ending.load(), kThreadIndexes);
}

}  // namespace
}  // namespace nexar
