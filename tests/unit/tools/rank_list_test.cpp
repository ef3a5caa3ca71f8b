#include "run/rank_list.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace nexar::run {
namespace {

std::string list(const std::vector<std::uint32_t>& ranks) {
    return rank_list(ranks);
}

TEST(RankListTest, reads_like_part_of_a_sentence) {
    EXPECT_EQ(list({2}), "rank 2");
    EXPECT_EQ(list({0, 1}), "ranks 0 and 1");
    EXPECT_EQ(list({0, 1, 3}), "ranks 0, 1 and 3");
    EXPECT_EQ(list({0, 1, 2}), "ranks 0 to 2");
    EXPECT_EQ(list({0, 1, 2, 3, 5, 7, 8, 9}), "ranks 0 to 3, 5 and 7 to 9");
}

TEST(RankListTest, stays_short) {
    std::vector<std::uint32_t> odd;
    for (std::uint32_t rank = 1; rank < 200; rank += 2) odd.push_back(rank);
    EXPECT_EQ(list(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 92 others");
    std::vector<std::uint32_t> nine(odd.begin(), odd.begin() + 9);
    EXPECT_EQ(list(nine), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 17");
    std::vector<std::uint32_t> ten(odd.begin(), odd.begin() + 10);
    EXPECT_EQ(list(ten), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 2 others");
}

}  // namespace
}  // namespace nexar::run
