#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/buffer_pool.hpp"
#include "counting_memory.hpp"

namespace nexar {
namespace {

using testing::HasSubstr;

PoolProfile tiny() {
    return *PoolProfileBuilder().tier("small", 16 * 1024, 4).tier("large", 64 * 1024, 4).build();
}

void fill(std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(i * 11 + i / 256);
    }
}

bool is_filled(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != static_cast<std::byte>(i * 11 + i / 256)) return false;
    }
    return true;
}

TEST(PooledBuffer, is_empty_by_default_and_after_a_move) {
    BufferPool pool(tiny());
    PooledBuffer none;
    EXPECT_EQ(none.size(), 0U);
    EXPECT_EQ(none.capacity(), 0U);
    EXPECT_EQ(none.data(), nullptr);

    PooledBuffer buffer = pool.checkout(5000).value();
    std::byte* const data = buffer.data();
    PooledBuffer moved = std::move(buffer);
    EXPECT_EQ(buffer.data(), nullptr);  // NOLINT(bugprone-use-after-move): the contract
    EXPECT_EQ(buffer.size(), 0U);
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.size(), 5000U);
    EXPECT_EQ(moved.capacity(), 8 * 1024);
}

TEST(PooledBuffer, assignment_returns_the_old_buffer_to_the_pool) {
    BufferPool pool(tiny());
    PooledBuffer buffer = pool.checkout(4 * 1024).value();
    buffer = pool.checkout(8 * 1024).value();
    EXPECT_EQ(pool.statistics().total.bytes_held, 4 * 1024);
    EXPECT_EQ(pool.statistics().total.bytes_in_use, 8 * 1024);
    PooledBuffer& same = buffer;
    buffer = std::move(same);
    EXPECT_EQ(buffer.size(), 8 * 1024);
    EXPECT_EQ(pool.statistics().total.bytes_in_use, 8 * 1024);
}

TEST(PooledBuffer, resizing_within_capacity_does_not_move_it) {
    BufferPool pool(tiny());
    PooledBuffer buffer = pool.checkout(5000).value();
    fill(buffer.span());
    const std::byte* const data = buffer.data();
    ASSERT_TRUE(buffer.resize(10));
    EXPECT_EQ(buffer.size(), 10U);
    ASSERT_TRUE(buffer.resize(8 * 1024));
    EXPECT_EQ(buffer.data(), data);
    EXPECT_EQ(buffer.span().size(), 8 * 1024);
    EXPECT_TRUE(is_filled(buffer.span().first(10)));
    EXPECT_EQ(pool.statistics().total.misses, 1U);
}

TEST(PooledBuffer, keeps_its_content_when_it_grows_even_beyond_the_pool_limit) {
    BufferPool pool(tiny());
    PooledBuffer buffer = pool.checkout(5000).value();
    fill(buffer.span());
    for (const std::size_t bytes : {9000U, 40000U, 100000U}) {
        ASSERT_TRUE(buffer.resize(bytes));
        EXPECT_EQ(buffer.size(), bytes);
        EXPECT_GE(buffer.capacity(), bytes);
        EXPECT_TRUE(is_filled(std::as_const(buffer).span().first(5000)));
    }
}

TEST(PooledBuffer, is_unchanged_when_it_cannot_grow) {
    CountingMemory memory;
    BufferPool pool(tiny(), memory);
    PooledBuffer buffer = pool.checkout(5000).value();
    fill(buffer.span());
    const std::byte* const data = buffer.data();
    memory.run_dry_after(0);
    EXPECT_EQ(buffer.resize(9000).error().code(), Errc::out_of_memory);
    EXPECT_EQ(buffer.resize(BufferPool::kMaxBytes + 1).error().code(), Errc::invalid_argument);
    EXPECT_EQ(buffer.data(), data);
    EXPECT_EQ(buffer.size(), 5000U);
    EXPECT_TRUE(is_filled(buffer.span()));
}

TEST(PooledBuffer, releases_adopted_memory_exactly_once) {
    std::array<std::byte, 100> memory{};
    std::vector<std::span<std::byte>> released;
    {
        PooledBuffer buffer = PooledBuffer::adopt(
            memory, [&released](std::span<std::byte> bytes) { released.push_back(bytes); });
        EXPECT_EQ(buffer.data(), memory.data());
        EXPECT_EQ(buffer.size(), 100U);
        EXPECT_EQ(buffer.capacity(), 100U);
        ASSERT_TRUE(buffer.resize(10));
        PooledBuffer moved = std::move(buffer);
        buffer = std::move(moved);
        EXPECT_TRUE(released.empty());
    }
    ASSERT_EQ(released.size(), 1U);
    EXPECT_EQ(released[0].data(), memory.data());
    EXPECT_EQ(released[0].size(), 100U);
}

TEST(PooledBuffer, adopts_empty_memory_and_move_only_callables) {
    int released = 0;
    {
        auto owner = std::make_unique<int>(7);
        const PooledBuffer buffer = PooledBuffer::adopt(
            {},
            [&released, owner = std::move(owner)](std::span<std::byte>) { released += *owner; });
        EXPECT_EQ(buffer.size(), 0U);
    }
    EXPECT_EQ(released, 7);
}

TEST(PooledBuffer, adopted_and_empty_buffers_cannot_grow) {
    std::array<std::byte, 100> memory{};
    PooledBuffer adopted = PooledBuffer::adopt(memory, [](std::span<std::byte>) {});
    const auto refused = adopted.resize(101);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
    EXPECT_THAT(refused.error().cause(),
                HasSubstr("adopted buffer of 100 bytes cannot grow to 101"));
    EXPECT_EQ(adopted.size(), 100U);
    PooledBuffer none;
    EXPECT_TRUE(none.resize(0));
    EXPECT_THAT(none.resize(1).error().cause(), HasSubstr("empty buffer of 0 bytes"));
}

struct ThrowsWhenCopied {
    int* released;
    explicit ThrowsWhenCopied(int& count) : released(&count) {}
    ThrowsWhenCopied(const ThrowsWhenCopied&) { throw std::runtime_error("no copy"); }
    ThrowsWhenCopied& operator=(const ThrowsWhenCopied&) = delete;
    void operator()(std::span<std::byte>) const { ++*released; }
};

TEST(PooledBuffer, a_failed_adopt_does_not_release_the_memory) {
    int released = 0;
    std::array<std::byte, 8> memory{};
    const ThrowsWhenCopied release(released);
    EXPECT_THROW((void)PooledBuffer::adopt(memory, release), std::runtime_error);
    EXPECT_EQ(released, 0);
}

}  // namespace
}  // namespace nexar
