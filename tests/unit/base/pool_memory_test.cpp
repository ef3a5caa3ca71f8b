#include "base/pool_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>

namespace nexar {
namespace {

TEST(SystemMemory, returns_writable_page_aligned_blocks) {
    for (const std::size_t bytes : {kPoolPage, kPoolPage * 3, SystemMemory::kHugePage - kPoolPage,
                                    SystemMemory::kHugePage, SystemMemory::kHugePage + kPoolPage}) {
        const PoolBlock block = system_memory().allocate(bytes);
        ASSERT_NE(block.memory, nullptr) << bytes;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.memory) % kPoolPage, 0U) << bytes;
        std::ranges::fill(std::span(block.memory, bytes), std::byte{7});
        system_memory().release(block.memory, bytes);
    }
}

TEST(SystemMemory, blocks_marked_as_zeroed_are_zero) {
    constexpr std::size_t kBytes = SystemMemory::kHugePage + kPoolPage;
    for (int round = 0; round < 3; ++round) {
        const PoolBlock block = system_memory().allocate(kBytes);
        ASSERT_TRUE(block.zeroed);
        EXPECT_TRUE(std::ranges::all_of(std::span(block.memory, kBytes),
                                        [](std::byte b) { return b == std::byte{0}; }));
        std::ranges::fill(std::span(block.memory, kBytes), std::byte{7});
        system_memory().release(block.memory, kBytes);
    }
    const PoolBlock small = system_memory().allocate(kPoolPage);
    EXPECT_FALSE(small.zeroed);
    system_memory().release(small.memory, kPoolPage);
}

TEST(SystemMemory, aligns_large_blocks_for_huge_pages) {
    constexpr std::size_t kBytes = SystemMemory::kHugePage * 2;
    const PoolBlock block = system_memory().allocate(kBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.memory) % SystemMemory::kHugePage, 0U);
    system_memory().release(block.memory, kBytes);
}

TEST(SystemMemory, returns_large_blocks_to_the_system_at_once) {
    constexpr std::size_t kBytes = SystemMemory::kHugePage;
    const PoolBlock block = system_memory().allocate(kBytes);
    unsigned char resident = 0;
    ASSERT_EQ(mincore(block.memory, kPoolPage, &resident), 0);
    system_memory().release(block.memory, kBytes);
    EXPECT_EQ(mincore(block.memory, kPoolPage, &resident), -1);
    EXPECT_EQ(errno, ENOMEM);
}

TEST(SystemMemory, returns_null_if_the_allocation_fails) {
    // More than the address space of any CPU that we build for.
    EXPECT_EQ(system_memory().allocate(std::size_t{1} << 60).memory, nullptr);
}

TEST(SystemMemoryDeathTest, asserts_whole_pages) {
    EXPECT_DEATH((void)system_memory().allocate(kPoolPage + 1), "whole pages");
    EXPECT_DEATH((void)system_memory().allocate(0), "whole pages");
}

}  // namespace
}  // namespace nexar
