#include "routing/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "support/seed.hpp"
#include "views.hpp"

namespace nexar::routing::testing {
namespace {

std::size_t most_neighbours(const Topology& topology, std::size_t n) {
    if (topology.complete(n)) return n - 1;
    if (topology.kind() == Topology::Kind::k_regular) return topology.degree();
    return static_cast<std::size_t>(std::bit_width(n - 1));
}

bool connected(const Graph& graph) {
    return graph.size() == 0 || search(graph, 0).discovered.size() == graph.size();
}

void expect_consistent(const Graph& graph) {
    std::uint64_t ends = 0;
    for (Position a = 0; a < graph.size(); ++a) {
        std::vector<Position> expected;
        for (Position b = 0; b < graph.size(); ++b) {
            ASSERT_EQ(graph.adjacent(a, b), graph.adjacent(b, a)) << a << " " << b;
            if (graph.adjacent(a, b)) expected.push_back(b);
        }
        ASSERT_FALSE(graph.adjacent(a, a));
        ASSERT_EQ(graph.neighbours(a), expected);
        ASSERT_EQ(graph.degree(a), expected.size());
        ends += expected.size();
    }
    EXPECT_EQ(graph.edges() * 2, ends);
}

TEST(Graph, every_topology_is_symmetric_and_connected_in_every_world) {
    Random random(test_seed(11));
    for (const Topology& topology : all_topologies()) {
        for (std::uint32_t n = 1; n <= 130; ++n) {
            SCOPED_TRACE(::testing::Message() << topology.text() << " of " << n);
            for (const auto& ranks : {consecutive(n), with_gaps(n, random)}) {
                const Graph graph(topology, ranks);
                expect_consistent(graph);
                EXPECT_TRUE(connected(graph));
                for (Position member = 0; member < n; ++member) {
                    ASSERT_LE(graph.degree(member), most_neighbours(topology, n));
                }
            }
        }
    }
}

TEST(Graph, large_worlds_are_connected_and_sparse) {
    Random random(test_seed(12));
    for (const Topology& topology : sparse_topologies()) {
        for (const std::uint32_t n : {256U, 1000U, 4096U}) {
            const Graph graph(topology, with_gaps(n, random));
            EXPECT_TRUE(connected(graph));
            for (Position member = 0; member < n; ++member) {
                ASSERT_LE(graph.degree(member), most_neighbours(topology, n));
            }
            EXPECT_LE(graph.edges(), n * most_neighbours(topology, n) / 2);
        }
    }
}

TEST(Graph, k_regular_loses_few_edges_to_cycles_that_share_one) {
    const Graph graph(Topology::k_regular(8), consecutive(1024));
    EXPECT_GE(graph.edges(), 4U * 1024 - 20) << "measured: 4084 of 4096";
}

TEST(Graph, hypercube_connects_slots_that_differ_in_one_bit) {
    Random random(test_seed(13));
    for (std::uint32_t n = 1; n <= 130; n += 3) {
        const auto ranks = with_gaps(n, random);
        const auto slots = hypercube_slots(ranks);
        const Graph graph(Topology::hypercube(), ranks);
        for (Position a = 0; a < n; ++a) {
            for (Position b = 0; b < n; ++b) {
                ASSERT_EQ(graph.adjacent(a, b), std::has_single_bit(slots[a] ^ slots[b]));
            }
        }
    }
}

TEST(Graph, a_full_graph_stores_no_edges) {
    const Graph graph(Topology(), consecutive(16384));
    EXPECT_TRUE(graph.complete());
    EXPECT_EQ(graph.edges(), 16384ULL * 16383 / 2);
    EXPECT_TRUE(graph.row(77).empty());
    EXPECT_TRUE(graph.adjacent(0, 16383));
    EXPECT_TRUE(Graph(Topology::k_regular(8), consecutive(9)).complete());
}

TEST(Graph, an_empty_view_has_an_empty_graph) {
    for (const Topology& topology : all_topologies()) {
        const Graph graph(topology, {});
        EXPECT_EQ(graph.size(), 0U);
        EXPECT_EQ(graph.edges(), 0U);
        EXPECT_EQ(measure(graph).diameter, 0U);
    }
}

TEST(Graph, members_of_one_host_are_adjacent_in_every_topology) {
    Random random(test_seed(14));
    for (const Topology& topology : all_topologies()) {
        for (std::uint32_t n = 1; n <= 60; n += 2) {
            const auto ranks = with_gaps(n, random);
            const auto hosts = random_hosts(n, 1 + random.below(n), random);
            const Graph with_hosts(topology, ranks, hosts);
            const Graph graph(topology, ranks);
            expect_consistent(with_hosts);
            for (Position a = 0; a < n; ++a) {
                for (Position b = 0; b < n; ++b) {
                    const bool same_host = a != b && hosts[a] && hosts[a] == hosts[b];
                    ASSERT_EQ(with_hosts.adjacent(a, b), graph.adjacent(a, b) || same_host);
                }
            }
        }
    }
}

TEST(Graph, a_sparse_view_on_one_host_is_complete_and_stores_no_edges) {
    const std::vector<Host> hosts(16384, 3);
    const Graph graph(Topology::k_regular(4), consecutive(16384), hosts);
    EXPECT_TRUE(graph.complete());
    EXPECT_TRUE(graph.row(5).empty());
    EXPECT_EQ(measure(graph).diameter, 1U);
}

TEST(Graph, positions_follow_the_order_of_ranks) {
    const std::vector<Rank> ranks{Rank(3), Rank(7), Rank(8), Rank(100)};
    const Graph graph(Topology::hypercube(), ranks);
    for (Position member = 0; member < 4; ++member) {
        EXPECT_EQ(graph.rank(member), ranks[member]);
        EXPECT_EQ(graph.position(ranks[member]), member);
    }
    for (const std::uint32_t missing : {0U, 4U, 99U, 101U}) {
        EXPECT_EQ(graph.position(Rank(missing)), std::nullopt);
    }
}

TEST(EdgeSet, an_edge_has_no_direction_and_counts_once) {
    const std::vector<Edge> edges{{5, 2}, {2, 5}, {1, 2}, {5, 2}};
    const EdgeSet set(edges);
    EXPECT_EQ(set.size(), 2U);
    EXPECT_TRUE(set.contains({2, 5}));
    EXPECT_TRUE(set.contains({5, 2}));
    EXPECT_FALSE(set.contains({1, 5}));
    ASSERT_EQ(set.of(2).size(), 2U);
    EXPECT_EQ(set.of(2)[0], (Edge{2, 1}));
    EXPECT_EQ(set.of(2)[1], (Edge{2, 5}));
    EXPECT_TRUE(set.of(3).empty());
    EXPECT_EQ(set, EdgeSet(std::vector<Edge>{{2, 1}, {2, 5}}));
}

/// One search with random hosts and broken edges, against the matrix.
void expect_search_matches(const Topology& topology, std::uint32_t n, Random& random) {
    const auto hosts = random_hosts(n, 1 + random.below(2 * n), random);
    const Graph graph(topology, with_gaps(n, random), hosts);
    const auto broken = random_edges(graph, random.below(graph.edges() + 1), random);
    const auto start = static_cast<Position>(random.below(n));
    std::optional<Position> without;
    if (random.chance(0.5)) without = static_cast<Position>((start + 1 + random.below(n - 1)) % n);
    Matrix matrix(graph, broken);
    if (without) matrix.remove(*without);

    const Reach reach = search(graph, start, EdgeSet(broken), without);
    EXPECT_EQ(reach.hops, matrix.hops(start));
    for (std::size_t i = 0; i < reach.discovered.size(); ++i) {
        const Position member = reach.discovered[i];
        const Position parent = reach.parents[member];
        ASSERT_EQ(parent == kNoParent, i == 0);
        if (i == 0) continue;
        ASSERT_TRUE(matrix.usable(parent, member));
        ASSERT_EQ(reach.hops[member], reach.hops[parent] + 1);
        ASSERT_GE(reach.hops[member], reach.hops[reach.discovered[i - 1]]);
    }
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(reach.hops, kUnreachable)),
              n - reach.discovered.size());
}

TEST(Search, distances_match_a_simple_search_with_hosts_and_broken_edges) {
    Random random(test_seed(15));
    for (const Topology& topology : all_topologies()) {
        for (int i = 0; i < 400; ++i) {
            const auto n = static_cast<std::uint32_t>(2 + random.below(40));
            SCOPED_TRACE(::testing::Message() << topology.text() << " of " << n << ", case " << i);
            expect_search_matches(topology, n, random);
            if (::testing::Test::HasFailure()) return;
        }
    }
}

TEST(Search, a_full_graph_is_searched_without_visiting_every_pair) {
    Random random(test_seed(16));
    const Graph graph(Topology(), consecutive(16384));
    const EdgeSet broken(random_edges(graph, 50, random));
    const auto begin = std::chrono::steady_clock::now();
    for (Position start = 0; start < 50; ++start) {
        const Reach reach = search(graph, start, broken);
        ASSERT_EQ(reach.discovered.size(), graph.size());
    }
    // 20 ms; visiting every pair would be 13 000 million steps.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST(Tree, every_member_is_as_near_to_the_root_as_in_the_graph) {
    Random random(test_seed(17));
    for (const Topology& topology : all_topologies()) {
        for (std::uint32_t n = 1; n <= 130; n += 3) {
            const Graph graph(topology, with_gaps(n, random));
            const auto root = static_cast<Position>(random.below(n));
            const auto hops = Matrix(graph).hops(root);
            const Tree tree(graph, root);
            std::size_t children = 0;
            for (Position member = 0; member < n; ++member) {
                ASSERT_EQ(tree.depth(member), hops[member]);
                ASSERT_EQ(tree.parent(member).has_value(), member != root);
                ASSERT_TRUE(std::ranges::is_sorted(tree.children(member)));
                for (const Position child : tree.children(member)) {
                    ASSERT_EQ(tree.parent(child), member);
                    ASSERT_TRUE(graph.adjacent(member, child));
                }
                children += tree.children(member).size();
            }
            EXPECT_EQ(children, n - 1);
        }
    }
}

TEST(Tree, broken_edges_are_avoided_and_separated_members_have_no_parent) {
    const Graph ring(Topology::k_regular(2), consecutive(6));
    const Tree whole(ring, 0, EdgeSet(std::vector<Edge>{{0, 1}}));
    EXPECT_EQ(whole.parent(1), 2U);
    EXPECT_EQ(whole.depth(1), 5U);
    const Tree split(ring, 0, EdgeSet(std::vector<Edge>{{0, 1}, {3, 4}}));
    EXPECT_EQ(split.depth(4), 2U);
    for (const Position separated : {1U, 2U, 3U}) {
        EXPECT_EQ(split.parent(separated), std::nullopt);
        EXPECT_EQ(split.depth(separated), std::nullopt);
    }
}

TEST(Distances, diameter_and_average_match_a_simple_search) {
    Random random(test_seed(18));
    for (const Topology& topology : all_topologies()) {
        for (const std::uint32_t n : {1U, 2U, 3U, 7U, 63U, 64U, 65U, 100U, 130U}) {
            const Graph graph(topology, with_gaps(n, random), random_hosts(n, n, random));
            const Matrix matrix(graph);
            std::uint32_t diameter = 0;
            double total = 0;
            for (Position start = 0; start < n; ++start) {
                for (const std::uint32_t hops : matrix.hops(start)) {
                    diameter = std::max(diameter, hops);
                    total += hops;
                }
            }
            const Distances distances = measure(graph);
            EXPECT_EQ(distances.diameter, diameter) << topology.text() << " of " << n;
            EXPECT_DOUBLE_EQ(distances.average, n == 1 ? 0 : total / (double{1} * n * (n - 1)));
        }
    }
}

struct Measured {
    std::string_view topology;
    std::uint32_t members;
    std::uint32_t diameter;
    double average;
};

TEST(Distances, expanders_have_small_diameters) {
    // The ranks are 0 to n-1. The numbers are exact, since nothing about the graphs is random.
    for (const auto& [text, members, diameter, average] :
         {Measured{"k_regular:2", 16, 8, 4.27}, Measured{"k_regular:4", 16, 4, 2.14},
          Measured{"k_regular:4", 1024, 9, 5.65}, Measured{"k_regular:8", 64, 4, 2.25},
          Measured{"k_regular:8", 1024, 5, 3.62}, Measured{"k_regular:8", 4096, 6, 4.34},
          Measured{"k_regular:16", 1024, 4, 2.79}, Measured{"hypercube", 1000, 10, 5.0},
          Measured{"hypercube", 1024, 10, 5.0}, Measured{"full", 4096, 1, 1.0}}) {
        const Distances distances =
            measure(Graph(Topology::parse(text).value(), consecutive(members)));
        EXPECT_EQ(distances.diameter, diameter) << text << " of " << members;
        EXPECT_NEAR(distances.average, average, 0.01) << text << " of " << members;
    }
}

TEST(Distances, every_thousand_consecutive_ranks_make_a_good_expander) {
    Random random(test_seed(19));
    for (int i = 0; i < 20; ++i) {
        const auto first = static_cast<std::uint32_t>(random.below(1U << 30U));
        EXPECT_LE(measure(Graph(Topology::k_regular(8), consecutive(1024, first))).diameter, 6U);
        EXPECT_LE(measure(Graph(Topology::k_regular(4), consecutive(16, first))).diameter, 5U);
    }
}

}  // namespace
}  // namespace nexar::routing::testing
