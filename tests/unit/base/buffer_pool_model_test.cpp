#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/random.hpp"
#include "counting_memory.hpp"
#include "support/seed.hpp"

namespace nexar {
namespace {

struct ModelTier {
    std::size_t limit;
    std::size_t keep;
};
constexpr std::array<ModelTier, 3> kTiers{{{8 * 1024, 3}, {32 * 1024, 2}, {256 * 1024, 1}}};
constexpr std::size_t kLargest = 256 * 1024;

// The rules of the pool in their simplest form.
class Model {
public:
    static std::size_t capacity_for(std::size_t bytes) {
        if (bytes > kLargest) return (bytes + 4095) / 4096 * 4096;
        return std::max<std::size_t>(4096, std::bit_ceil(bytes));
    }

    std::size_t checkout(std::size_t bytes) {
        const std::size_t capacity = capacity_for(bytes);
        const bool hit = idle[capacity] > 0;
        if (hit) --idle[capacity];
        (hit ? hits : misses) += 1;
        in_use += capacity;
        high_water = std::max(high_water, in_use + held());
        return capacity;
    }

    void give_back(std::size_t capacity, std::size_t first_capacity) {
        in_use -= capacity;
        if (capacity > kLargest || capacity > 4 * tier(first_capacity).limit) return;
        if (kept_in(tier(capacity)) < tier(capacity).keep) ++idle[capacity];
    }

    std::size_t held() const {
        std::size_t bytes = 0;
        for (const auto& [capacity, count] : idle) bytes += capacity * count;
        return bytes;
    }

    std::map<std::size_t, std::size_t> idle;  // count by capacity
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::size_t in_use = 0;
    std::size_t high_water = 0;

private:
    static const ModelTier& tier(std::size_t capacity) {
        return *std::ranges::find_if(kTiers,
                                     [capacity](const auto& t) { return capacity <= t.limit; });
    }

    std::size_t kept_in(const ModelTier& wanted) const {
        std::size_t count = 0;
        for (const auto& [capacity, number] : idle) {
            if (capacity <= kLargest && &tier(capacity) == &wanted) count += number;
        }
        return count;
    }
};

struct Out {
    PooledBuffer buffer{};
    std::size_t first_capacity = 0;
};

class PoolAndModel {
public:
    explicit PoolAndModel(std::uint64_t seed) : random_(seed), pool_(profile(), memory_) {}

    void step() {
        const std::uint64_t choice = random_.below(100);
        if (choice < 45 && out_.size() < 12) {
            checkout();
        } else if (choice < 85 && !out_.empty()) {
            give_back(random_.below(out_.size()));
        } else if (choice < 98 && !out_.empty()) {
            resize(out_[random_.below(out_.size())]);
        } else if (choice == 99) {
            EXPECT_EQ(pool_.trim(), model_.held());
            model_.idle.clear();
        }
        compare();
    }

private:
    static PoolProfile profile() {
        PoolProfileBuilder builder;
        for (const ModelTier& tier : kTiers) {
            builder.tier(std::to_string(tier.limit), tier.limit, tier.keep);
        }
        return *builder.build();
    }

    // Small and large sizes equally often, and the boundaries between classes.
    std::size_t any_size() {
        const std::size_t power = std::size_t{1} << (10 + random_.below(10));
        switch (random_.below(4)) {
            case 0:
                return power;
            case 1:
                return power + 1;
            default:
                return random_.below(power);
        }
    }

    void checkout() {
        const std::size_t bytes = any_size();
        PooledBuffer buffer = pool_.checkout(bytes).value();
        const std::size_t capacity = model_.checkout(bytes);
        EXPECT_EQ(buffer.capacity(), capacity) << bytes;
        out_.push_back({.buffer = std::move(buffer), .first_capacity = capacity});
    }

    void give_back(std::size_t which) {
        model_.give_back(out_[which].buffer.capacity(), out_[which].first_capacity);
        std::swap(out_[which], out_.back());
        out_.pop_back();
    }

    void resize(Out& out) {
        const std::size_t bytes = any_size();
        const std::size_t before = out.buffer.capacity();
        ASSERT_TRUE(out.buffer.resize(bytes));
        EXPECT_EQ(out.buffer.size(), bytes);
        if (bytes > before) {
            EXPECT_EQ(out.buffer.capacity(), model_.checkout(bytes));
            model_.give_back(before, out.first_capacity);
        } else {
            EXPECT_EQ(out.buffer.capacity(), before);
        }
    }

    void compare() {
        const PoolStatistics now = pool_.statistics();
        ASSERT_EQ(now.total.hits, model_.hits);
        ASSERT_EQ(now.total.misses, model_.misses);
        ASSERT_EQ(now.total.bytes_held, model_.held());
        ASSERT_EQ(now.total.bytes_in_use, model_.in_use);
        ASSERT_EQ(now.total.bytes_high_water, model_.high_water);
        ASSERT_EQ(memory_.bytes(), model_.held() + model_.in_use);
    }

    Random random_;
    CountingMemory memory_;
    BufferPool pool_;
    Model model_;
    std::vector<Out> out_;
};

TEST(BufferPoolModel, matches_the_model_over_random_operations) {
    PoolAndModel both(test_seed(31));
    for (int i = 0; i < 5000; ++i) {
        both.step();
        ASSERT_FALSE(testing::Test::HasFailure()) << "after step " << i;
    }
}

}  // namespace
}  // namespace nexar
