#include "base/buffer_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/pool_poison.hpp"
#include "counting_memory.hpp"

namespace nexar {
namespace {

using testing::HasSubstr;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

PoolProfile tiny(std::size_t keep) {
    return *PoolProfileBuilder()
                .tier("small", 16 * kKiB, keep)
                .tier("large", 64 * kKiB, keep)
                .build();
}

PooledBuffer out(BufferPool& pool, std::size_t bytes) {
    return pool.checkout(bytes).value();
}

// Non-uniform and different for every salt.
void fill(PooledBuffer& buffer, unsigned salt) {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
        buffer.data()[i] = static_cast<std::byte>(i * 7 + i / 251 + salt);
    }
}

bool filled(const PooledBuffer& buffer, std::size_t bytes, unsigned salt) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (buffer.data()[i] != static_cast<std::byte>(i * 7 + i / 251 + salt)) return false;
    }
    return true;
}

bool all_are(std::span<const std::byte> bytes, std::byte value) {
    return std::ranges::all_of(bytes, [value](std::byte b) { return b == value; });
}

TEST(BufferPool, allocates_nothing_before_the_first_checkout) {
    CountingMemory memory;
    const BufferPool pool(PoolProfile::training(), memory);
    EXPECT_EQ(memory.blocks(), 0);
}

TEST(BufferPool, reserves_less_than_twice_the_request) {
    AddressesOnly memory;
    BufferPool pool(PoolProfile::training(), memory);
    for (std::size_t power = 1; power <= 256 * kMiB; power *= 2) {
        for (const std::size_t bytes : {power - 1, power, power + 1}) {
            const PooledBuffer buffer = out(pool, bytes);
            EXPECT_EQ(buffer.size(), bytes);
            EXPECT_GE(buffer.capacity(), bytes);
            EXPECT_LT(buffer.capacity(), std::max(2 * bytes, 4 * kKiB + 1)) << bytes;
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (4 * kKiB), 0U);
        }
    }
}

TEST(BufferPool, reuses_a_returned_buffer_only_for_the_same_class) {
    BufferPool pool(tiny(4));
    const std::byte* const first = out(pool, 5 * kKiB).data();
    const PooledBuffer other_class = out(pool, 4 * kKiB);
    EXPECT_NE(other_class.data(), first);
    const PooledBuffer same_class = out(pool, 8 * kKiB);
    EXPECT_EQ(same_class.data(), first);
    const PooledBuffer another = out(pool, 8 * kKiB);
    EXPECT_NE(another.data(), first);
    EXPECT_EQ(pool.statistics().total.hits, 1U);
    EXPECT_EQ(pool.statistics().total.misses, 3U);
}

TEST(BufferPool, keeps_as_many_buffers_as_the_profile_allows) {
    for (const PoolProfile& profile : {PoolProfile::training(), PoolProfile::inference()}) {
        AddressesOnly memory;
        BufferPool pool(profile, memory);
        for (std::size_t i = 0; i < profile.tiers().size(); ++i) {
            const PoolTier& tier = profile.tiers()[i];
            std::vector<PooledBuffer> buffers;
            for (std::size_t n = 0; n < tier.keep + 2; ++n) {
                buffers.push_back(out(pool, tier.limit_bytes));
            }
            EXPECT_EQ(pool.statistics().tiers[i].usage.bytes_in_use,
                      (tier.keep + 2) * tier.limit_bytes);
            buffers.clear();
            EXPECT_EQ(pool.statistics().tiers[i].usage.bytes_held, tier.keep * tier.limit_bytes)
                << tier.name;
            EXPECT_EQ(pool.statistics().tiers[i].usage.bytes_in_use, 0U) << tier.name;
        }
    }
}

TEST(BufferPool, counts_all_classes_of_a_tier_against_its_limit) {
    CountingMemory memory;
    BufferPool pool(tiny(2), memory);
    {
        const PooledBuffer a = out(pool, 4 * kKiB);
        const PooledBuffer b = out(pool, 8 * kKiB);
        const PooledBuffer c = out(pool, 16 * kKiB);
        const PooledBuffer of_other_tier = out(pool, 32 * kKiB);
    }
    EXPECT_EQ(memory.blocks(), 3);
    // Buffers are destroyed in reverse order, so the first one found its tier full.
    EXPECT_EQ(pool.statistics().tiers[0].usage.bytes_held, 24 * kKiB);
    EXPECT_EQ(pool.statistics().tiers[1].usage.bytes_held, 32 * kKiB);
}

TEST(BufferPool, keeps_no_buffers_in_a_tier_that_keeps_0) {
    CountingMemory memory;
    BufferPool pool(tiny(0), memory);
    for (int i = 0; i < 3; ++i) (void)out(pool, 10 * kKiB);
    EXPECT_EQ(memory.blocks(), 0);
    EXPECT_EQ(pool.statistics().total.misses, 3U);
    EXPECT_EQ(pool.statistics().total.hits, 0U);
}

TEST(BufferPool, does_not_pool_requests_above_the_largest_tier) {
    CountingMemory memory;
    BufferPool pool(tiny(4), memory);
    {
        const PooledBuffer buffer = out(pool, 64 * kKiB + 1);
        EXPECT_EQ(buffer.capacity(), 68 * kKiB);
        const PoolUsage unpooled = pool.statistics().unpooled;
        EXPECT_EQ(unpooled.bytes_in_use, 68 * kKiB);
        EXPECT_EQ(unpooled.misses, 1U);
    }
    EXPECT_EQ(memory.blocks(), 0);
    EXPECT_EQ(pool.statistics().unpooled.bytes_in_use, 0U);
    EXPECT_EQ(pool.statistics().unpooled.bytes_high_water, 68 * kKiB);
}

TEST(BufferPool, keeps_a_buffer_that_grew_in_the_tier_of_its_new_size) {
    CountingMemory memory;
    BufferPool pool(tiny(4), memory);
    {
        PooledBuffer buffer = out(pool, 16 * kKiB);
        ASSERT_TRUE(buffer.resize(64 * kKiB));  // 4 times the limit of its tier
    }
    EXPECT_EQ(pool.statistics().tiers[0].usage.bytes_held, 16 * kKiB);
    EXPECT_EQ(pool.statistics().tiers[1].usage.bytes_held, 64 * kKiB);
}

TEST(BufferPool, frees_a_buffer_that_outgrew_4_times_its_tier) {
    CountingMemory memory;
    const auto profile =
        PoolProfileBuilder().tier("small", 16 * kKiB, 4).tier("large", 512 * kKiB, 4).build();
    BufferPool pool(*profile, memory);
    {
        PooledBuffer buffer = out(pool, 1);
        ASSERT_TRUE(buffer.resize(64 * kKiB + 1));
        EXPECT_EQ(buffer.capacity(), 128 * kKiB);
        ASSERT_TRUE(buffer.resize(256 * kKiB));
    }
    // The pool keeps only the block that the buffer had before it grew.
    EXPECT_EQ(pool.statistics().total.bytes_held, 4 * kKiB);
    EXPECT_EQ(memory.blocks(), 1);
    {
        // A buffer that started in the larger tier may have that size.
        const PooledBuffer buffer = out(pool, 256 * kKiB);
    }
    EXPECT_EQ(pool.statistics().total.bytes_held, 260 * kKiB);
}

TEST(BufferPool, zeroes_only_on_request) {
    CountingMemory memory;
    BufferPool pool(tiny(4), memory);
    EXPECT_TRUE(all_are(out(pool, 9000).span(), CountingMemory::kGarbage));
    {
        const PooledBuffer used_before = pool.checkout_zeroed(9000).value();
        EXPECT_TRUE(all_are(used_before.span(), std::byte{0}));
        const PooledBuffer fresh = pool.checkout_zeroed(9000).value();
        EXPECT_TRUE(all_are(fresh.span(), std::byte{0}));
        const PooledBuffer unpooled = pool.checkout_zeroed(70 * kKiB).value();
        EXPECT_TRUE(all_are(unpooled.span(), std::byte{0}));
    }
    EXPECT_EQ(pool.statistics().total.hits, 1U);
}

TEST(BufferPool, does_not_clear_new_memory_that_is_already_zero) {
    CountingMemory memory;
    memory.claims_zeroed = true;
    BufferPool pool(tiny(4), memory);
    EXPECT_TRUE(all_are(pool.checkout_zeroed(9000).value().span(), CountingMemory::kGarbage));
    // The claim holds for new memory only.
    EXPECT_TRUE(all_are(pool.checkout_zeroed(9000).value().span(), std::byte{0}));
}

TEST(BufferPool, returns_a_valid_buffer_of_0_bytes) {
    BufferPool pool(tiny(4));
    PooledBuffer buffer = out(pool, 0);
    EXPECT_EQ(buffer.size(), 0U);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_TRUE(buffer.span().empty());
    ASSERT_TRUE(buffer.resize(100));
    EXPECT_EQ(buffer.size(), 100U);
}

TEST(BufferPool, rejects_absurd_sizes) {
    BufferPool pool(tiny(4));
    for (const std::size_t bytes : {BufferPool::kMaxBytes + 1, SIZE_MAX}) {
        for (const auto& refused : {pool.checkout(bytes), pool.checkout_zeroed(bytes)}) {
            ASSERT_FALSE(refused);
            EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
            EXPECT_THAT(refused.error().cause(), HasSubstr(std::to_string(bytes)));
            EXPECT_THAT(refused.error().cause(), HasSubstr("the maximum is 1099511627776"));
        }
    }
}

TEST(BufferPool, recovers_from_a_failed_allocation) {
    CountingMemory memory;
    BufferPool pool(tiny(4), memory);
    const PooledBuffer held = out(pool, 4 * kKiB);
    memory.run_dry_after(0);
    for (const std::size_t bytes : {10 * kKiB, 100 * kKiB}) {
        const auto refused = pool.checkout(bytes);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), Errc::out_of_memory);
    }
    EXPECT_THAT(pool.checkout(10 * kKiB).error().cause(),
                HasSubstr("could not allocate 16384 bytes"));
    const PoolUsage total = pool.statistics().total;
    EXPECT_EQ(total.misses, 1U);
    EXPECT_EQ(total.bytes_high_water, 4 * kKiB);
    memory.run_dry_after(1);
    EXPECT_TRUE(pool.checkout(10 * kKiB));
}

TEST(BufferPool, trim_frees_only_idle_buffers) {
    CountingMemory memory;
    BufferPool pool(tiny(4), memory);
    PooledBuffer in_use = out(pool, 5 * kKiB);
    fill(in_use, 3);
    {
        const PooledBuffer a = out(pool, 4 * kKiB);
        const PooledBuffer b = out(pool, 64 * kKiB);
    }
    EXPECT_EQ(pool.trim(), 68 * kKiB);
    EXPECT_EQ(memory.bytes(), 8 * kKiB);
    EXPECT_TRUE(filled(in_use, in_use.size(), 3));
    EXPECT_EQ(pool.statistics().total.bytes_held, 0U);
    EXPECT_EQ(pool.trim(), 0U);
}

TEST(BufferPool, statistics_add_up) {
    CountingMemory memory;
    BufferPool pool(tiny(1), memory);
    {
        const PooledBuffer a = out(pool, 16 * kKiB);
        const PooledBuffer b = out(pool, 16 * kKiB);
        const PooledBuffer c = out(pool, 64 * kKiB);
        const PooledBuffer d = out(pool, 100 * kKiB);
    }
    const PooledBuffer again = out(pool, 12 * kKiB);
    const PoolStatistics now = pool.statistics();
    ASSERT_EQ(now.tiers.size(), 2U);
    EXPECT_EQ(now.tiers[0].name, "small");
    EXPECT_EQ(now.tiers[0].usage.hits, 1U);
    EXPECT_EQ(now.tiers[0].usage.misses, 2U);
    EXPECT_EQ(now.tiers[0].usage.bytes_held, 0U);
    EXPECT_EQ(now.tiers[0].usage.bytes_in_use, 16 * kKiB);
    EXPECT_EQ(now.tiers[0].usage.bytes_high_water, 32 * kKiB);
    EXPECT_EQ(now.tiers[1].usage.bytes_held, 64 * kKiB);
    EXPECT_EQ(now.tiers[1].usage.bytes_high_water, 64 * kKiB);
    EXPECT_EQ(now.unpooled.bytes_high_water, 100 * kKiB);
    EXPECT_EQ(now.total.hits, 1U);
    EXPECT_EQ(now.total.misses, 4U);
    EXPECT_EQ(now.total.bytes_held, 64 * kKiB);
    EXPECT_EQ(now.total.bytes_in_use, 16 * kKiB);
    EXPECT_EQ(now.total.bytes_high_water, 196 * kKiB);
    EXPECT_EQ(memory.bytes(), 80 * kKiB);
}

TEST(BufferPoolDeathTest, asserts_that_it_outlives_its_buffers) {
    const auto outlive = [] {
        PooledBuffer survivor;
        BufferPool pool(tiny(4));
        survivor = out(pool, 100);
    };
    EXPECT_DEATH(outlive(), "its buffers were still checked out");
}

#if defined(NEXAR_ASAN)
TEST(BufferPoolDeathTest, address_sanitizer_detects_a_use_after_return) {
    BufferPool pool(tiny(4));
    const auto use_after_return = [&pool] {
        PooledBuffer buffer = out(pool, 100);
        volatile std::byte* const stale = buffer.data();
        buffer = PooledBuffer();
        *stale = std::byte{1};
    };
    EXPECT_DEATH(use_after_return(), "use-after-poison");
}
#endif

}  // namespace
}  // namespace nexar
