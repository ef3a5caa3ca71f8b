#include "routing/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "support/seed.hpp"
#include "views.hpp"

namespace nexar::routing::testing {
namespace {

TEST(Topology, text_that_was_written_can_be_read_back) {
    for (const std::string_view text :
         {"full", "hypercube", "k_regular:2", "k_regular:8", "k_regular:32"}) {
        const auto topology = Topology::parse(text);
        ASSERT_TRUE(topology) << topology.error().what();
        EXPECT_EQ(topology->text(), text);
    }
    EXPECT_EQ(*Topology::parse("full"), Topology());
    EXPECT_EQ(*Topology::parse("hypercube"), Topology::hypercube());
    EXPECT_EQ(*Topology::parse("k_regular:8"), Topology::k_regular(8));
    EXPECT_EQ(Topology::parse("k_regular:8")->degree(), 8U);
}

TEST(Topology, invalid_text_is_quoted_and_the_error_lists_what_is_allowed) {
    for (const std::string_view text :
         {"", "ring", "Full", "full ", "k_regular", "k_regular:", "k_regular:0", "k_regular:3",
          "k_regular:34", "k_regular:-2", "k_regular:+4", "k_regular:04", "k_regular:4x",
          "k_regular:4294967298", "hypercube:3"}) {
        const auto topology = Topology::parse(text);
        ASSERT_FALSE(topology) << text;
        EXPECT_EQ(topology.error().code(), Errc::invalid_argument);
        EXPECT_EQ(topology.error().cause(),
                  "\"" + std::string(text) +
                      "\" is not a topology; write full, hypercube, or k_regular:K, where K is an "
                      "even number from 2 to 32, for example k_regular:8");
    }
}

TEST(Topology, small_views_of_k_regular_are_complete) {
    EXPECT_TRUE(Topology::k_regular(4).complete(5));
    EXPECT_FALSE(Topology::k_regular(4).complete(6));
    EXPECT_TRUE(Topology().complete(16384));
    EXPECT_FALSE(Topology::hypercube().complete(3));
}

TEST(Topology, only_rings_are_too_wide_for_many_members) {
    EXPECT_EQ(Topology::k_regular(2).most_members(16), 33U);
    EXPECT_GE(Topology::k_regular(4).most_members(16), 16384U);
    EXPECT_GE(Topology::hypercube().most_members(16), 16384U);
    EXPECT_GE(Topology().most_members(16), 16384U);
}

TEST(Topology, members_of_different_versions_compute_the_same_edges) {
    // Members do not exchange their edges, so a change here is a change of the protocol.
    std::vector<Rank> ranks;
    for (const std::uint32_t rank : {0U, 1U, 2U, 3U, 5U, 8U, 13U, 21U, 34U, 55U}) {
        ranks.emplace_back(rank);
    }
    const std::vector<std::vector<Position>> expected{
        {1, 3, 9},    {0, 2, 4}, {1, 3, 5}, {0, 2, 4, 8}, {1, 3, 5, 8},
        {2, 4, 6, 7}, {5, 7, 9}, {5, 6, 8}, {3, 4, 7, 9}, {0, 6, 8}};
    const Graph graph(Topology::k_regular(4), ranks);
    for (Position member = 0; member < graph.size(); ++member) {
        EXPECT_EQ(graph.neighbours(member), expected[member]);
    }
    EXPECT_EQ(hypercube_slots(ranks), (std::vector<Position>{0, 1, 2, 3, 5, 8, 4, 9, 6, 7}));
}

TEST(Topology, first_cycle_of_k_regular_has_the_order_of_ranks) {
    Random random(test_seed(1));
    for (const std::uint32_t n : {10U, 77U, 130U}) {
        const Graph graph(Topology::k_regular(8), with_gaps(n, random));
        for (Position member = 0; member < n; ++member) {
            EXPECT_TRUE(graph.adjacent(member, (member + 1) % n)) << n << " " << member;
        }
    }
}

/// Compares the graphs of a view before and after the member at `removed` left.
void expect_few_changes(std::uint32_t degree, const std::vector<Rank>& before, Position removed) {
    std::vector<Rank> after = before;
    after.erase(after.begin() + removed);
    const Topology topology = Topology::k_regular(degree);
    const RankEdges old_edges = rank_edges(Graph(topology, before));
    const RankEdges new_edges = rank_edges(Graph(topology, after));
    std::map<Rank, int> gained;
    std::map<Rank, int> lost;
    for (const auto& [a, b] : new_edges) {
        if (!old_edges.contains({a, b})) ++gained[a], ++gained[b];
    }
    for (const auto& [a, b] : old_edges) {
        if (a == before[removed] || b == before[removed]) continue;
        if (!new_edges.contains({a, b})) ++lost[a], ++lost[b];
    }
    EXPECT_TRUE(lost.empty()) << "only edges of the removed member may disappear";
    EXPECT_LE(gained.size(), degree) << "two members per cycle";
    const int all = std::accumulate(gained.begin(), gained.end(), 0,
                                    [](int x, auto& y) { return x + y.second; });
    EXPECT_LE(all, static_cast<int>(degree)) << "one edge per cycle";
}

TEST(Topology, a_removal_from_k_regular_adds_at_most_one_edge_per_cycle_and_breaks_none) {
    Random random(test_seed(2));
    for (const std::uint32_t degree : {2U, 4U, 8U, 32U}) {
        for (std::uint32_t n = degree + 3; n <= 130; n += 1 + n / 6) {
            for (int i = 0; i < 3; ++i) {
                const auto removed = static_cast<Position>(random.below(n));
                SCOPED_TRACE(::testing::Message() << degree << " of " << n << " - " << removed);
                expect_few_changes(degree, with_gaps(n, random), removed);
            }
        }
    }
}

std::vector<Rank> without(std::vector<Rank> ranks, Rank removed) {
    std::erase(ranks, removed);
    return ranks;
}

std::size_t moved(const std::vector<Rank>& before, const std::vector<Rank>& after) {
    std::map<Rank, Position> old_slots;
    const auto slots_before = hypercube_slots(before);
    for (std::size_t i = 0; i < before.size(); ++i) old_slots[before[i]] = slots_before[i];
    const auto slots = hypercube_slots(after);
    std::size_t count = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (old_slots.at(after[i]) != slots[i]) ++count;
    }
    return count;
}

void expect_each_slot_once(std::vector<Position> slots) {
    std::ranges::sort(slots);
    for (Position slot = 0; slot < slots.size(); ++slot) ASSERT_EQ(slots[slot], slot);
}

TEST(Topology, hypercube_slots_are_used_once_each) {
    Random random(test_seed(3));
    for (std::uint32_t n = 0; n <= 130; ++n) {
        expect_each_slot_once(hypercube_slots(consecutive(n)));
        expect_each_slot_once(hypercube_slots(consecutive(n, 5000)));
        expect_each_slot_once(hypercube_slots(with_gaps(n, random)));
    }
    // All members prefer the same slot.
    std::vector<Rank> colliding;
    for (std::uint32_t i = 0; i < 300; ++i) colliding.emplace_back(i * 4096);
    expect_each_slot_once(hypercube_slots(colliding));
    expect_each_slot_once(hypercube_slots(with_gaps(4096, random)));
}

TEST(Topology, members_with_small_ranks_sit_in_the_hypercube_slot_of_their_rank) {
    Random random(test_seed(4));
    for (std::uint32_t n = 1; n <= 130; ++n) {
        const auto ranks = with_gaps(n, random, 2);
        const auto slots = hypercube_slots(ranks);
        for (std::uint32_t i = 0; i < n && ranks[i].value() < n; ++i) {
            EXPECT_EQ(slots[i], ranks[i].value());
        }
    }
}

TEST(Topology, a_removal_from_the_hypercube_moves_at_most_as_many_members_as_are_missing) {
    Random random(test_seed(5));
    for (std::uint32_t n = 1; n <= 130; ++n) {
        std::vector<Rank> ranks = consecutive(n);
        for (std::size_t missing = 1; missing <= std::min(n - 1, 12U); ++missing) {
            const auto after = without(ranks, ranks[random.below(ranks.size())]);
            EXPECT_LE(moved(ranks, after), missing) << n;
            ranks = after;
        }
    }
}

TEST(Topology, a_removal_from_the_hypercube_moves_few_members_also_when_ranks_are_high) {
    Random random(test_seed(6));
    for (const std::uint32_t first : {777U, 5000U, 123'456U}) {
        const auto ranks = consecutive(1000, first);
        std::size_t all = 0;
        constexpr std::size_t kRemovals = 100;
        for (std::size_t i = 0; i < kRemovals; ++i) {
            all += moved(ranks, without(ranks, ranks[random.below(ranks.size())]));
        }
        EXPECT_LE(all, 8 * kRemovals) << "measured: 4 per removal";
    }
}

}  // namespace
}  // namespace nexar::routing::testing
