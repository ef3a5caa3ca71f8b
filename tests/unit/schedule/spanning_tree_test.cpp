#include "schedule/spanning_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "support/seed.hpp"
#include "unit/schedule/sparse.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::ElementsAre;
using Parents = std::vector<std::uint32_t>;

std::vector<std::uint32_t> by_place(const SpanningTree& tree) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t place = 0; place < tree.world(); ++place) {
        ranks.push_back(tree.rank_at(place));
        EXPECT_EQ(tree.place(ranks.back()), place);
    }
    return ranks;
}

TEST(SpanningTree, places_the_ranks_of_a_subtree_one_after_the_other) {
    const SpanningTree tree(Parents{0, 3, 0, 0, 3});
    EXPECT_EQ(tree.root(), 0U);
    EXPECT_EQ(tree.parent(0), 0U);
    EXPECT_EQ(tree.parent(4), 3U);
    EXPECT_THAT(tree.children(0), ElementsAre(3, 2));
    EXPECT_THAT(tree.children(3), ElementsAre(1, 4));
    EXPECT_THAT(tree.children(4), ElementsAre());
    EXPECT_THAT(by_place(tree), ElementsAre(0, 3, 1, 4, 2));
    EXPECT_EQ(tree.size(0), 5U);
    EXPECT_EQ(tree.size(3), 3U);
    EXPECT_EQ(tree.size(2), 1U);
}

TEST(SpanningTree, serves_the_largest_subtree_first_and_equal_ones_in_the_order_of_ranks) {
    const SpanningTree tree(Parents{5, 5, 1, 0, 5, 5, 2, 5});
    EXPECT_EQ(tree.root(), 5U);
    EXPECT_THAT(tree.children(5), ElementsAre(1, 0, 4, 7));
    EXPECT_THAT(by_place(tree), ElementsAre(5, 1, 2, 6, 0, 3, 4, 7));
}

TEST(SpanningTree, of_one_rank_has_no_edges) {
    const SpanningTree tree(Parents{0});
    EXPECT_EQ(tree.world(), 1U);
    EXPECT_TRUE(tree.children(0).empty());
    EXPECT_EQ(tree.shape().depth, 0);
}

TEST(SpanningTree, has_the_shape_that_its_ways_have) {
    // The way to 4: the second child of 3, which is the first one of 0.
    const TreeShape shape = SpanningTree(Parents{0, 3, 0, 0, 3}).shape();
    EXPECT_EQ(shape.depth, 2);
    EXPECT_EQ(shape.total_depth, 6);
    EXPECT_EQ(shape.turns, 1);
    EXPECT_EQ(shape.root_children, 2);
    EXPECT_EQ(shape.children, 2);
    EXPECT_EQ(shape.passed, 5);  // 3 and its two children, then both of these
}

TEST(SpanningTree, of_a_topology_has_the_shortest_ways_along_its_links) {
    for (const routing::Topology& topology : sparse_topologies()) {
        for (std::uint32_t world = 3; world <= 65; ++world) {
            const Hops hops = hops_of(topology, world);
            if (hops.none()) continue;
            for (const std::uint32_t root : {0U, 1U, world / 2, world - 1}) {
                const SpanningTree tree = hops.tree(root);
                ASSERT_EQ(tree.root(), root);
                const std::vector<std::uint32_t> depth = hops.from(root);
                for (std::uint32_t rank = 0; rank < world; ++rank) {
                    if (rank == root) continue;
                    const std::uint32_t parent = tree.parent(rank);
                    ASSERT_TRUE(hops.adjacent(rank, parent)) << topology.text() << " " << world;
                    ASSERT_EQ(depth[rank], depth[parent] + 1) << topology.text() << " " << world;
                }
            }
        }
    }
}

TEST(SpanningTree, of_some_ranks_has_the_shortest_ways_too) {
    Random random(test_seed(5));
    for (const routing::Topology& topology : sparse_topologies()) {
        const Hops all = hops_of(topology, 50);
        for (int i = 0; i < 10; ++i) {
            const auto ranks = some_ranks(50, 12, random);
            const Hops hops = all.among(ranks);
            const SpanningTree tree = hops.tree(3);
            for (std::uint32_t rank = 0; rank < 12; ++rank) {
                std::uint32_t way = 0;
                for (std::uint32_t at = rank; at != 3; at = tree.parent(at)) {
                    way += hops.from(at)[tree.parent(at)];
                }
                EXPECT_EQ(way, hops.from(3)[rank]) << topology.text();
            }
        }
    }
}

TEST(SpanningTree, of_a_topology_shares_the_children_among_possible_parents) {
    // In a square with two more corners behind, each middle rank gets one.
    const std::vector<std::vector<std::uint32_t>> rows{
        {1, 2}, {0, 3, 4}, {0, 3, 4}, {1, 2}, {1, 2}};
    const SpanningTree tree = Hops(rows).tree(0);
    EXPECT_THAT(tree.children(1), ElementsAre(3));
    EXPECT_THAT(tree.children(2), ElementsAre(4));
}

}  // namespace
}  // namespace nexar::schedule::testing
