#include "schedule/hops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/hypercube_walk.hpp"
#include "support/seed.hpp"
#include "unit/schedule/sparse.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::ElementsAre;
using Rows = std::vector<std::vector<std::uint32_t>>;

/// 0 - 1 - 2 - 3 - 4, and 1 - 4.
const Rows line_and_chord{{1}, {0, 2, 4}, {1, 3}, {2, 4}, {1, 3}};

TEST(HypercubeWalk, visits_every_slot_once_and_changes_one_bit_at_a_time) {
    for (std::uint32_t n = 0; n < 700; ++n) {
        const std::vector<std::uint32_t> walk = hypercube_walk(n);
        std::vector<std::uint32_t> sorted = walk;
        std::ranges::sort(sorted);
        std::vector<std::uint32_t> all(n);
        std::iota(all.begin(), all.end(), 0U);
        ASSERT_EQ(sorted, all) << n;
        for (std::uint32_t i = 1; i < n; ++i) {
            ASSERT_EQ(std::popcount(walk[i - 1] ^ walk[i]), 1) << n << " step " << i;
        }
        if (n < 2) continue;
        ASSERT_EQ(std::popcount(walk.back() ^ walk.front()), n % 2 == 0 ? 1 : 2) << n;
    }
    EXPECT_THAT(hypercube_walk(6), ElementsAre(4, 0, 2, 3, 1, 5));
    EXPECT_THAT(hypercube_walk(7), ElementsAre(6, 4, 0, 2, 3, 1, 5));
}

TEST(RankOrder, of_the_numbers_of_ranks_is_empty) {
    EXPECT_TRUE(RankOrder().ranks().empty());
    EXPECT_TRUE(RankOrder({0, 1, 2}).ranks().empty());
    EXPECT_EQ(RankOrder({0, 1, 2}).rank_at(2), 2U);
    const RankOrder order({2, 0, 1});
    EXPECT_THAT(order.ranks(), ElementsAre(2, 0, 1));
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(order.rank_at(order.position_of(rank)), rank);
    }
}

TEST(Hops, are_none_where_every_pair_has_a_link) {
    EXPECT_TRUE(Hops().none());
    EXPECT_EQ(Hops().stretches(), nullptr);
    EXPECT_TRUE(Hops(Rows{{1, 2}, {0, 2}, {0, 1}}).none());
    EXPECT_TRUE(hops_of(routing::Topology(), 40).none());
    EXPECT_TRUE(hops_of(routing::Topology::k_regular(8), 9).none());
    EXPECT_FALSE(hops_of(routing::Topology::k_regular(8), 10).none());
    EXPECT_TRUE(hops_of(routing::Topology::hypercube(), 2).none());
    const Hops hops(line_and_chord);
    EXPECT_TRUE(hops.among(std::vector<std::uint32_t>{3, 4}).none());
    EXPECT_FALSE(hops.among(std::vector<std::uint32_t>{3, 1}).none());
    EXPECT_TRUE(hops.among(std::vector<std::uint32_t>{3}).none());
    EXPECT_TRUE(Hops().among(std::vector<std::uint32_t>{3, 1}).none());
}

TEST(Hops, are_those_of_shortest_ways) {
    const Hops hops(line_and_chord);
    EXPECT_THAT(hops.from(0), ElementsAre(0, 1, 2, 3, 2));
    EXPECT_TRUE(hops.adjacent(1, 4));
    EXPECT_FALSE(hops.adjacent(2, 4));
}

TEST(Hops, among_some_ranks_may_pass_through_others) {
    const Hops some = Hops(line_and_chord).among(std::vector<std::uint32_t>{3, 0, 2});
    EXPECT_EQ(some.world(), 3U);
    EXPECT_THAT(some.from(0), ElementsAre(0, 3, 1));
    EXPECT_THAT(some.from(1), ElementsAre(3, 0, 2));
    EXPECT_TRUE(some.adjacent(0, 2));
    const Hops less = some.among(std::vector<std::uint32_t>{1, 0});
    EXPECT_THAT(less.from(0), ElementsAre(0, 3));
}

TEST(Hops, that_are_equal_have_equal_hashes_and_others_have_not) {
    const Hops hops(line_and_chord);
    const std::vector<std::uint32_t> all{0, 1, 2, 3, 4};
    EXPECT_EQ(hops, hops.among(all));
    EXPECT_EQ(hops, Hops(line_and_chord));
    EXPECT_EQ(hops.hash(), Hops(line_and_chord).hash());
    Rows other = line_and_chord;
    other[2] = {1};
    other[3] = {4};
    std::set<std::uint64_t> hashes{Hops().hash(),
                                   hops.hash(),
                                   Hops(other).hash(),
                                   Hops(line_and_chord, {0, 1, 2, 4, 3}).hash(),
                                   hops.among(std::vector<std::uint32_t>{1, 0, 2, 3, 4}).hash(),
                                   hops.among(std::vector<std::uint32_t>{0, 1, 2, 3}).hash()};
    EXPECT_EQ(hashes.size(), 6U);
    EXPECT_NE(hops, Hops(other));
    EXPECT_NE(hops, Hops());
}

TEST(Hops, give_rings_an_order_that_follows_links_wherever_there_is_one) {
    for (const routing::Topology& topology : sparse_topologies()) {
        const bool cube = topology == routing::Topology::hypercube();
        for (std::uint32_t world = 3; world <= 130; ++world) {
            const Hops hops = hops_of(topology, world);
            if (hops.none()) continue;
            const bool closed = !cube || world % 2 == 0;
            for (std::uint32_t i = 0; i < world; ++i) {
                const std::uint32_t rank = hops.order().rank_at(i);
                const std::uint32_t after = hops.order().rank_at((i + 1) % world);
                const bool last = i + 1 == world;
                ASSERT_EQ(hops.from(rank)[after], closed || !last ? 1U : 2U)
                    << topology.text() << " " << world << " position " << i;
            }
            // Rings in the order of ranks need no translation.
            EXPECT_EQ(hops.order().ranks().empty(), !cube) << topology.text() << " " << world;
            EXPECT_EQ(hops.stretches()->next.mean == 1, closed);
            EXPECT_EQ(hops.stretches()->next.load, closed ? 1 : 2);
        }
    }
}

TEST(Hops, keep_the_order_among_some_ranks) {
    Random random(test_seed(11));
    const Hops hops = hops_of(routing::Topology::hypercube(), 40);
    for (int i = 0; i < 20; ++i) {
        const auto ranks = some_ranks(40, 17, random);
        const Hops some = hops.among(ranks);
        std::uint32_t before = 0;
        for (std::uint32_t position = 0; position < 17; ++position) {
            const std::uint32_t at =
                hops.order().position_of(ranks[some.order().rank_at(position)]);
            if (position > 0) {
                EXPECT_LT(before, at);
            }
            before = at;
        }
    }
}

/// The mean hops of a pattern, over all ranks.
template <class To>
double mean_hops(const Hops& hops, const To& to) {
    double sum = 0;
    double count = 0;
    for (std::uint32_t rank = 0; rank < hops.world(); ++rank) {
        for (const std::uint32_t other : to(rank)) {
            sum += hops.from(rank)[other];
            ++count;
        }
    }
    return sum / count;
}

TEST(Hops, are_averaged_over_the_messages_of_a_pattern) {
    for (const routing::Topology& topology : sparse_topologies()) {
        for (const std::uint32_t world : {11U, 16U, 40U, 64U}) {
            const Hops hops = hops_of(topology, world);
            const Stretches& found = *hops.stretches();
            const auto shifted = [&](std::uint32_t distance) {
                return mean_hops(hops, [&](std::uint32_t rank) {
                    return std::vector{(rank + distance) % world};
                });
            };
            EXPECT_DOUBLE_EQ(found.next_rank.mean, shifted(1));
            ASSERT_EQ(found.shifted_in_round.size(),
                      static_cast<std::size_t>(std::bit_width(world - 1)));
            for (std::size_t i = 0; i < found.shifted_in_round.size(); ++i) {
                EXPECT_DOUBLE_EQ(found.shifted_in_round[i].mean, shifted(1U << i));
            }
            EXPECT_DOUBLE_EQ(found.all.mean, mean_hops(hops, [&](std::uint32_t rank) {
                                 std::vector<std::uint32_t> others(world);
                                 std::iota(others.begin(), others.end(), 0U);
                                 std::erase(others, rank);
                                 return others;
                             }));
            const FoldTree groups(world);
            ASSERT_EQ(found.partners_in_round.size(), groups.rounds());
            for (std::size_t i = 0; i < groups.rounds(); ++i) {
                EXPECT_DOUBLE_EQ(
                    found.partners_in_round[i].mean, mean_hops(hops, [&](std::uint32_t rank) {
                        std::vector<std::uint32_t> partner;
                        if (groups.is_leader(rank)) {
                            partner.push_back(groups.leader(groups.group_of(rank) ^ (1U << i)));
                        }
                        return partner;
                    }));
            }
            EXPECT_EQ(found.tree.mean, 1);
        }
    }
}

TEST(Hops, of_partners_in_a_complete_hypercube_are_one) {
    for (const std::uint32_t world : {4U, 8U, 64U, 256U}) {
        const Hops hops = hops_of(routing::Topology::hypercube(), world);
        EXPECT_EQ(hops.stretches()->partners, Stretch{});
        EXPECT_GT(hops.stretches()->shifted.mean, 1);
    }
}

TEST(Hops, are_sampled_in_large_worlds) {
    const Hops hops = hops_of(routing::Topology::k_regular(4), 1000);
    const double exact =
        mean_hops(hops, [&](std::uint32_t rank) { return std::vector{(rank + 500) % 1000}; });
    EXPECT_NEAR(hops.stretches()->all.mean / exact, 1, 0.05);
    EXPECT_EQ(hops.stretches()->next.mean, 1);
}

}  // namespace
}  // namespace nexar::schedule::testing
