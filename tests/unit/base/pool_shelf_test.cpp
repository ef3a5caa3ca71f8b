#include "base/pool_shelf.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

#include "page_blocks.hpp"

namespace nexar {
namespace {

TEST(SizeClass, is_the_smallest_power_of_two_from_4_kib_that_fits) {
    EXPECT_EQ(class_for(0), 0U);
    EXPECT_EQ(class_for(1), 0U);
    EXPECT_EQ(class_for(4096), 0U);
    for (SizeClass c = 1; c < 30; ++c) {
        EXPECT_EQ(class_bytes(c), std::size_t{4096} << c);
        EXPECT_EQ(class_for(class_bytes(c)), c);
        EXPECT_EQ(class_for(class_bytes(c) - 1), c);
        EXPECT_EQ(class_for(class_bytes(c) + 1), c + 1);
    }
}

TEST(PoolShelf, returns_only_blocks_of_the_requested_class) {
    const PageBlocks blocks(3);
    PoolShelf shelf(3);
    ASSERT_TRUE(shelf.put(blocks[0], 0));
    ASSERT_TRUE(shelf.put(blocks[1], 5));
    ASSERT_TRUE(shelf.put(blocks[2], 24));
    EXPECT_EQ(shelf.bytes(), class_bytes(0) + class_bytes(5) + class_bytes(24));
    EXPECT_EQ(shelf.take(1), nullptr);
    EXPECT_EQ(shelf.take(5), blocks[1]);
    EXPECT_EQ(shelf.take(5), nullptr);
    EXPECT_EQ(shelf.take(24), blocks[2]);
    EXPECT_EQ(shelf.take(0), blocks[0]);
    EXPECT_EQ(shelf.bytes(), 0U);
}

TEST(PoolShelf, holds_as_many_blocks_as_it_has_places) {
    for (const std::size_t places : {0U, 1U, 4U, 7U, 8U, 9U, 256U}) {
        const PageBlocks blocks(places + 1);
        PoolShelf shelf(places);
        for (std::size_t i = 0; i < places; ++i) ASSERT_TRUE(shelf.put(blocks[i], i % 2)) << places;
        EXPECT_FALSE(shelf.put(blocks[places], 0)) << places;
        std::set<std::byte*> seen;
        for (std::size_t i = 0; i < places; ++i) seen.insert(shelf.take(i % 2));
        EXPECT_EQ(seen.size(), places);
        EXPECT_FALSE(seen.contains(nullptr));
        EXPECT_EQ(shelf.take(0), nullptr);
        EXPECT_EQ(shelf.take(1), nullptr);
    }
}

TEST(PoolShelf, is_emptied_place_by_place) {
    const PageBlocks blocks(2);
    PoolShelf shelf(10);
    ASSERT_TRUE(shelf.put(blocks[0], 3));
    ASSERT_TRUE(shelf.put(blocks[1], 4));
    std::size_t bytes = 0;
    std::set<std::byte*> seen;
    for (std::size_t place = 0; place < shelf.places(); ++place) {
        const auto taken = shelf.take_from(place);
        if (taken.block == nullptr) continue;
        bytes += class_bytes(taken.size_class);
        seen.insert(taken.block);
    }
    EXPECT_EQ(seen, (std::set<std::byte*>{blocks[0], blocks[1]}));
    EXPECT_EQ(bytes, class_bytes(3) + class_bytes(4));
    EXPECT_EQ(shelf.bytes(), 0U);
}

TEST(PoolShelfDeathTest, asserts_that_a_block_starts_at_a_page) {
    const PageBlocks blocks(2);
    PoolShelf shelf(1);
    EXPECT_DEATH((void)shelf.put(blocks[0] + 8, 0), "start at a page");
}

}  // namespace
}  // namespace nexar
