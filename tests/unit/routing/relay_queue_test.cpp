#include "routing/relay_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::routing::queueing {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{std::chrono::seconds(7)};

Pair pair(std::uint32_t source, std::uint32_t target = 100) {
    return {.source = Rank(source), .target = Rank(target)};
}

/// A datagram that says which one it is.
std::vector<std::byte> datagram(std::uint32_t number, std::size_t size = 1200) {
    std::vector<std::byte> bytes(size, std::byte{static_cast<unsigned char>(number * 7 + size)});
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

std::uint32_t number_of(const std::vector<std::byte>& bytes) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    EXPECT_EQ(bytes, datagram(number, bytes.size()));
    return number;
}

constexpr std::size_t charged(std::size_t size) {
    return size + RelayQueue::kOverheadBytes;
}

TEST(RelayQueue, keeps_the_order_and_the_memory_of_a_pair) {
    RelayQueue queue;
    std::vector<const std::byte*> memory;
    for (std::uint32_t i = 0; i < 50; ++i) {
        auto bytes = datagram(i, 30 + i);
        memory.push_back(bytes.data());
        EXPECT_TRUE(queue.push(kStart, pair(1), std::move(bytes)));
    }
    for (std::uint32_t i = 0; i < 50; ++i) {
        const auto bytes = queue.pop(kStart);
        ASSERT_TRUE(bytes);
        EXPECT_EQ(number_of(*bytes), i);
        EXPECT_EQ(bytes->data(), memory[i]);
    }
    EXPECT_EQ(queue.pop(kStart), std::nullopt);
}

TEST(RelayQueue, frees_the_queue_of_a_pair_with_its_last_datagram) {
    RelayQueue queue;
    EXPECT_EQ(queue.next_deadline(), std::nullopt);
    queue.push(kStart, pair(1), datagram(1));
    queue.push(kStart, pair(2), datagram(2, 99));
    EXPECT_EQ(queue.pairs(), 2U);
    EXPECT_EQ(queue.bytes(), charged(1200) + charged(99));
    EXPECT_EQ(queue.bytes_of(pair(2)), charged(99));
    EXPECT_TRUE(queue.pop(kStart));
    EXPECT_EQ(queue.pairs(), 1U);
    EXPECT_TRUE(queue.pop(kStart));
    EXPECT_EQ(queue.pairs(), 0U);
    EXPECT_EQ(queue.bytes(), 0U);
    EXPECT_TRUE(queue.empty());
}

TEST(RelayQueue, gives_pairs_the_same_bytes_whatever_the_size_of_their_datagrams) {
    RelayQueue queue({.pair_bytes = 1 << 20, .total_bytes = 8 << 20});
    const std::array<std::size_t, 4> sizes{40, 1200, 31000, 60000};
    std::array<std::size_t, 4> sent{};
    std::uint32_t number = 0;
    for (std::size_t total = 0; total < 4'000'000;) {
        for (std::uint32_t i = 0; i < sizes.size(); ++i) {
            while (queue.bytes_of(pair(i)) < 200'000) {
                queue.push(kStart, pair(i), datagram(number++, sizes[i]));
            }
        }
        const std::size_t size = queue.pop(kStart)->size();
        sent[static_cast<std::size_t>(std::ranges::find(sizes, size) - sizes.begin())] += size;
        total += size;
    }
    for (const std::size_t bytes : sent) EXPECT_NEAR(static_cast<double>(bytes), 1e6, 2 * 60000);
    EXPECT_EQ(queue.counts().dropped_full, 0U);
}

TEST(RelayQueue, a_sparse_pair_waits_for_at_most_one_turn_of_each_saturating_pair) {
    Random random(test_seed(11));
    RelayQueue queue;
    constexpr std::uint32_t kSaturating = 5;
    constexpr std::size_t kLargest = 9000;
    const auto fill = [&] {
        for (std::uint32_t i = 0; i < kSaturating; ++i) {
            while (queue.bytes_of(pair(i)) < 100'000) {
                queue.push(kStart, pair(i), datagram(i, 30 + random.below(kLargest - 29)));
            }
        }
    };
    fill();
    for (int round = 0; round < 300; ++round) {
        for (std::uint64_t i = random.below(20); i > 0; --i) {
            queue.pop(kStart);
            fill();
        }
        queue.push(kStart, pair(77), datagram(4711, 60));
        std::map<std::uint32_t, std::size_t> before;
        for (auto bytes = *queue.pop(kStart); number_of(bytes) != 4711;
             bytes = *queue.pop(kStart)) {
            before[number_of(bytes)] += bytes.size();
            fill();
        }
        for (const auto& [number, bytes] : before) EXPECT_LT(bytes, 2 * kLargest) << number;
    }
    EXPECT_EQ(queue.counts().dropped_full, 0U);
}

TEST(RelayQueue, drops_datagrams_that_have_waited_too_long) {
    RelayQueue queue({.longest = milliseconds(50)});
    queue.push(kStart, pair(1), datagram(1));
    queue.push(kStart + milliseconds(20), pair(2), datagram(2));
    queue.push(kStart + milliseconds(30), pair(1), datagram(3));
    EXPECT_EQ(queue.next_deadline(), kStart + milliseconds(50));
    queue.expire(kStart + milliseconds(50) - Duration(1));
    EXPECT_EQ(queue.counts().dropped_old, 0U);
    queue.expire(kStart + milliseconds(50));
    EXPECT_EQ(queue.counts().dropped_old, 1U);
    EXPECT_EQ(queue.next_deadline(), kStart + milliseconds(70));
    EXPECT_EQ(number_of(*queue.pop(kStart + milliseconds(70))), 3U);
    EXPECT_EQ(queue.counts().dropped_old, 2U);
    EXPECT_EQ(queue.pop(kStart + milliseconds(70)), std::nullopt);
    EXPECT_EQ(queue.next_deadline(), std::nullopt);
    EXPECT_EQ(queue.counts().sent, 1U);
}

TEST(RelayQueue, a_pair_with_too_many_bytes_loses_its_own_oldest_datagram) {
    RelayQueue queue({.pair_bytes = 3 * charged(1200)});
    queue.push(kStart, pair(2), datagram(100));
    for (std::uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(queue.push(kStart, pair(1), datagram(i)));
    EXPECT_EQ(queue.bytes_of(pair(1)), 3 * charged(1200));
    EXPECT_EQ(queue.counts().dropped_full, 7U);
    std::vector<std::uint32_t> left;
    while (const auto bytes = queue.pop(kStart)) left.push_back(number_of(*bytes));
    std::ranges::sort(left);
    EXPECT_EQ(left, (std::vector<std::uint32_t>{7, 8, 9, 100}));
}

TEST(RelayQueue, one_datagram_can_replace_the_whole_queue_of_its_pair) {
    RelayQueue queue({.pair_bytes = charged(4000)});
    queue.push(kStart, pair(1), datagram(1));
    queue.push(kStart, pair(1), datagram(2));
    EXPECT_TRUE(queue.push(kStart, pair(1), datagram(3, 4000)));
    EXPECT_EQ(queue.datagrams(), 1U);
    EXPECT_EQ(number_of(*queue.pop(kStart)), 3U);
    EXPECT_EQ(queue.counts().dropped_full, 2U);
}

TEST(RelayQueue, a_flood_of_one_pair_does_not_crowd_out_the_others) {
    RelayQueue queue({.pair_bytes = 100 * charged(1200), .total_bytes = 100 * charged(1200)});
    for (std::uint32_t i = 0; i < 5; ++i) queue.push(kStart, pair(10 + i), datagram(i));
    for (std::uint32_t i = 0; i < 1000; ++i) queue.push(kStart, pair(1), datagram(1000 + i));
    for (std::uint32_t i = 5; i < 10; ++i) queue.push(kStart, pair(10 + i), datagram(i));
    EXPECT_EQ(queue.bytes(), 100 * charged(1200));
    std::vector<bool> seen(10);
    std::uint32_t newest = 0;
    while (const auto bytes = queue.pop(kStart)) {
        const std::uint32_t number = number_of(*bytes);
        if (number < 10) seen[number] = true;
        newest = std::max(newest, number);
    }
    EXPECT_EQ(std::ranges::count(seen, true), 10);
    EXPECT_EQ(newest, 1999U);
    EXPECT_EQ(queue.counts().dropped_full, 1010U - 100U);
}

TEST(RelayQueue, refuses_a_pair_beyond_the_limit_and_a_datagram_that_fits_no_queue) {
    RelayQueue queue({.pair_bytes = 10'000, .total_bytes = 20'000, .pairs = 3});
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(kStart, pair(i), datagram(i)));
    EXPECT_FALSE(queue.push(kStart, pair(3), datagram(3)));
    EXPECT_FALSE(queue.push(kStart, pair(1), datagram(4, 10'000)));
    EXPECT_TRUE(queue.push(kStart, pair(1), datagram(5)));
    EXPECT_EQ(queue.datagrams(), 4U);
    queue.pop(kStart);
    EXPECT_TRUE(queue.push(kStart, pair(3), datagram(6)));
    EXPECT_EQ(queue.counts().dropped_full, 2U);
}

TEST(RelayQueue, charges_the_memory_that_a_datagram_holds_and_not_only_its_bytes) {
    RelayQueue queue({.pair_bytes = 100'000});
    for (std::uint32_t i = 0; i < 10; ++i) {
        auto bytes = datagram(i, 30);
        bytes.reserve(60'000);
        queue.push(kStart, pair(1), std::move(bytes));
    }
    EXPECT_EQ(queue.datagrams(), 1U);
}

/// What the queue must hold, without its speed.
class Model {
public:
    struct One {
        std::uint32_t number;
        std::size_t bytes;
        TimePoint since;
    };
    std::map<std::uint32_t, std::deque<One>> pairs;

    std::size_t bytes_of(std::uint32_t source) const {
        std::size_t sum = 0;
        if (pairs.contains(source)) {
            for (const One& one : pairs.at(source)) sum += charged(one.bytes);
        }
        return sum;
    }

    /// Follows the queue: every pair has lost from its front until its bytes are right. Returns
    /// for every pair that lost something how many bytes it had before it lost the last one.
    std::map<std::uint32_t, std::size_t> follow(const RelayQueue& queue) {
        std::map<std::uint32_t, std::size_t> losers;
        for (auto& [source, ones] : pairs) {
            const std::size_t kept = queue.bytes_of(pair(source));
            while (bytes_of(source) > kept) {
                losers[source] = bytes_of(source);
                ones.pop_front();
            }
            EXPECT_EQ(bytes_of(source), kept);
        }
        std::erase_if(pairs, [](const auto& entry) { return entry.second.empty(); });
        return losers;
    }
};

struct Trial {
    static constexpr RelayLimits kLimits{
        .pair_bytes = 12'000, .total_bytes = 40'000, .pairs = 12, .longest = milliseconds(50)};

    Random& random;
    RelayQueue queue{kLimits, random.next()};
    Model model{};
    TimePoint now = kStart;
    std::uint32_t number = 0;

    void push() {
        queue.expire(now);
        model.follow(queue);
        const auto source = static_cast<std::uint32_t>(random.below(random.chance(0.5) ? 3 : 16));
        const std::size_t size = 4 + random.below(random.chance(0.1) ? 13'000 : 1500);
        const bool fits = charged(size) <= kLimits.pair_bytes &&
                          (model.pairs.contains(source) || model.pairs.size() < kLimits.pairs);
        const std::uint64_t full = queue.counts().dropped_full;
        ASSERT_EQ(queue.push(now, pair(source), datagram(++number, size)), fits);
        if (!fits) {
            ASSERT_TRUE(model.follow(queue).empty());
            return;
        }
        model.pairs[source].push_back({number, size, now});
        const auto losers = model.follow(queue);
        ASSERT_EQ(losers.empty(), queue.counts().dropped_full == full);
        for (const auto& [loser, had] : losers) {
            if (loser == source) continue;
            // It had most of all, not counting the datagram for which it had to give way.
            for (const auto& [other, ones] : model.pairs) {
                const std::size_t added = other == source ? charged(size) : 0;
                ASSERT_GE(had + added, model.bytes_of(other));
            }
        }
    }

    void pop() {
        const auto bytes = queue.pop(now);
        // What was too old is gone from the model as well, except the one that came out.
        if (!bytes) {
            model.follow(queue);
            ASSERT_TRUE(model.pairs.empty());
            return;
        }
        const std::uint32_t popped = number_of(*bytes);
        bool found = false;
        for (auto& [source, ones] : model.pairs) {
            while (!ones.empty() && now - ones.front().since >= kLimits.longest) ones.pop_front();
            if (ones.empty() || ones.front().number != popped) continue;
            ones.pop_front();
            found = true;
        }
        ASSERT_TRUE(found) << "it was not the first of its pair";
        ASSERT_TRUE(model.follow(queue).empty());
    }

    void check() const {
        std::size_t datagrams = 0;
        for (const auto& [source, ones] : model.pairs) {
            datagrams += ones.size();
            ASSERT_LE(queue.bytes_of(pair(source)), kLimits.pair_bytes);
        }
        ASSERT_EQ(queue.datagrams(), datagrams);
        ASSERT_EQ(queue.pairs(), model.pairs.size());
        ASSERT_LE(queue.pairs(), kLimits.pairs);
        ASSERT_LE(queue.bytes(), kLimits.total_bytes);
        const RelayQueueCounts& counts = queue.counts();
        ASSERT_EQ(counts.queued,
                  counts.sent + counts.dropped_full + counts.dropped_old + datagrams);
    }
};

TEST(RelayQueue, keeps_order_bounds_and_counts_under_any_load) {
    Random random(test_seed(12));
    for (int round = 0; round < 20; ++round) {
        Trial trial{.random = random};
        const double pushes = 0.3 + 0.5 * random.uniform();
        for (int step = 0; step < 500; ++step) {
            random.chance(pushes) ? trial.push() : trial.pop();
            if (random.chance(0.02)) trial.now += milliseconds(random.below(30));
            trial.check();
            ASSERT_FALSE(::testing::Test::HasFatalFailure()) << step;
        }
        trial.queue.expire(trial.now + milliseconds(50));
        EXPECT_EQ(trial.queue.pairs(), 0U);
        EXPECT_EQ(trial.queue.bytes(), 0U);
    }
}

}  // namespace
}  // namespace nexar::routing::queueing
