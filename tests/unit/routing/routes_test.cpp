#include "routing/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "support/seed.hpp"
#include "views.hpp"

namespace nexar::routing::testing {
namespace {

std::shared_ptr<const Graph> shared_graph(const Topology& topology, const std::vector<Rank>& ranks,
                                          const std::vector<Host>& hosts = {}) {
    return std::make_shared<const Graph>(topology, ranks, hosts);
}

/// The routes of all members of a view, which know the same broken edges.
class World {
public:
    explicit World(const std::shared_ptr<const Graph>& graph,
                   const std::vector<Edge>& broken = {}) {
        const EdgeSet unusable(broken);
        for (Position member = 0; member < graph->size(); ++member) {
            routes_.emplace_back(graph, member);
            routes_.back().assume_broken(unusable);
        }
    }

    Routes& of(Position member) { return routes_[member]; }

    /// Follows first choices, and returns the members passed after `from`, including `to`. Stops
    /// after as many hops as there are members.
    std::vector<Position> path(Position from, Position to) {
        std::vector<Position> path;
        while (from != to && path.size() < routes_.size()) {
            const auto next = of(from).next_hop(to);
            if (!next) break;
            EXPECT_TRUE(of(from).usable(*next));
            path.push_back(from = *next);
        }
        return path;
    }

    void expect_arrival(Position from, Position to) {
        const auto distance = of(from).distance(to);
        const auto passed = path(from, to);
        if (!distance) {
            EXPECT_TRUE(passed.empty());
            return;
        }
        ASSERT_EQ(passed.size(), *distance) << from << " to " << to;
        EXPECT_TRUE(passed.empty() || passed.back() == to);
    }

private:
    std::vector<Routes> routes_;
};

TEST(Routes, first_choices_arrive_in_as_many_hops_as_the_distance_in_every_world) {
    Random random(test_seed(21));
    for (const Topology& topology : all_topologies()) {
        for (std::uint32_t n = 1; n <= 130; ++n) {
            SCOPED_TRACE(::testing::Message() << topology.text() << " of " << n);
            World world(shared_graph(topology, with_gaps(n, random)));
            const bool all_pairs = n <= 17 || n == 33;
            for (Position from = 0; from < n; ++from) {
                for (Position to = 0; all_pairs && to < n; ++to) world.expect_arrival(from, to);
                if (from % 4 == 0) {
                    world.expect_arrival(from, static_cast<Position>(random.below(n)));
                }
            }
        }
    }
}

TEST(Routes, first_choices_arrive_in_large_worlds) {
    Random random(test_seed(22));
    for (const Topology& topology : sparse_topologies()) {
        if (topology == Topology::k_regular(2)) continue;  // long rings have long paths
        for (const std::uint32_t n : {256U, 1000U, 4096U}) {
            const auto graph = shared_graph(topology, with_gaps(n, random));
            World world(graph, random_edges(*graph, n / 10, random));
            for (int i = 0; i < 25; ++i) {
                const auto from = static_cast<Position>(random.below(n));
                world.expect_arrival(from, static_cast<Position>(random.below(n)));
            }
        }
    }
}

TEST(Routes, first_choices_arrive_when_all_members_know_the_broken_edges) {
    Random random(test_seed(23));
    for (const Topology& topology : all_topologies()) {
        for (int i = 0; i < 20; ++i) {
            const auto n = static_cast<std::uint32_t>(2 + random.below(25));
            SCOPED_TRACE(::testing::Message() << topology.text() << " of " << n);
            const auto graph =
                shared_graph(topology, with_gaps(n, random), random_hosts(n, n, random));
            World world(graph, random_edges(*graph, random.below(graph->edges() + 1), random));
            for (Position from = 0; from < n; ++from) {
                for (Position to = 0; to < n; ++to) world.expect_arrival(from, to);
            }
        }
    }
}

/// Compares the alternatives to one destination with those of the matrix.
void expect_right_alternatives(Routes& routes, const Matrix& whole, Position to) {
    const Position me = routes.me();
    Matrix without_me = whole;
    without_me.remove(me);
    const auto hops = without_me.hops(to);
    std::vector<std::uint32_t> expected;
    for (Position next = 0; next < hops.size(); ++next) {
        ASSERT_EQ(routes.usable(next), whole.usable(me, next));
        if (routes.usable(next) && hops[next] != kUnreachable) expected.push_back(hops[next] + 1);
    }
    std::ranges::sort(expected);
    expected.resize(std::min(expected.size(), Routes::kMostAlternatives));

    const auto found = routes.alternatives(to);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].hops, expected[i]);
        EXPECT_EQ(found[i].hops, hops[found[i].next] + 1);
        EXPECT_TRUE(routes.usable(found[i].next));
        for (std::size_t j = 0; j < i; ++j) EXPECT_NE(found[i].next, found[j].next);
    }
    const std::uint32_t distance = whole.hops(me)[to];
    EXPECT_EQ(routes.distance(to),
              distance == kUnreachable ? std::nullopt : std::optional(distance));
    if (routes.usable(to)) {
        EXPECT_EQ(found.front(), (Alternative{to, 1}));
    }
}

TEST(Routes, alternatives_are_the_nearest_usable_neighbours) {
    Random random(test_seed(24));
    for (const Topology& topology : all_topologies()) {
        for (int i = 0; i < 40; ++i) {
            const auto n = static_cast<std::uint32_t>(2 + random.below(24));
            SCOPED_TRACE(::testing::Message() << topology.text() << " of " << n << ", case " << i);
            const auto graph =
                shared_graph(topology, with_gaps(n, random), random_hosts(n, n, random));
            const auto broken = random_edges(*graph, random.below(graph->edges() + 1), random);
            const Matrix matrix(*graph, broken);
            Routes routes(graph, static_cast<Position>(random.below(n)));
            routes.assume_broken(EdgeSet(broken));
            for (Position to = 0; to < n; ++to) {
                if (to != routes.me()) expect_right_alternatives(routes, matrix, to);
            }
            if (::testing::Test::HasFailure()) return;
        }
    }
}

TEST(Routes, an_alternative_one_hop_longer_than_the_distance_arrives_without_coming_back) {
    Random random(test_seed(25));
    std::size_t compared = 0;
    for (const Topology& topology : all_topologies()) {
        for (int i = 0; i < 12; ++i) {
            const auto n = static_cast<std::uint32_t>(2 + random.below(40));
            const auto graph = shared_graph(topology, with_gaps(n, random));
            World world(graph, random_edges(*graph, n / 8, random));
            const auto me = static_cast<Position>(random.below(n));
            for (Position to = 0; to < n; ++to) {
                if (to == me) continue;
                for (const auto& [next, hops] : world.of(me).alternatives(to)) {
                    if (hops > *world.of(me).distance(to) + 1) continue;
                    const auto rest = world.path(next, to);
                    EXPECT_EQ(rest.size() + 1, hops);
                    EXPECT_FALSE(std::ranges::count(rest, me));
                    ++compared;
                }
            }
        }
    }
    EXPECT_GT(compared, 1000U);
}

TEST(Routes, the_choice_selects_an_alternative_and_wraps_around) {
    Routes routes(shared_graph(Topology::k_regular(8), consecutive(100)), 3);
    const auto known = routes.alternatives(60);
    const std::vector<Alternative> alternatives(known.begin(), known.end());
    ASSERT_EQ(alternatives.size(), 4U);
    for (const std::uint32_t choice : {0U, 1U, 2U, 3U, 4U, 7U, 4'000'000'001U}) {
        EXPECT_EQ(routes.next_hop(60, choice), alternatives[choice % 4].next);
    }
}

TEST(Routes, a_relay_never_sends_back_to_where_a_packet_came_from) {
    Routes routes(shared_graph(Topology::k_regular(2), consecutive(6)), 0);
    ASSERT_EQ(routes.next_hop(2), 1U);
    EXPECT_EQ(routes.next_hop(2, 0, 5), 1U);
    for (std::uint32_t choice = 0; choice < 4; ++choice) {
        EXPECT_EQ(routes.next_hop(2, choice, 1), 5U);
    }
    routes.assume_broken(EdgeSet(std::vector<Edge>{{5, 0}}));
    EXPECT_EQ(routes.next_hop(2, 0, 1), std::nullopt);
}

TEST(Routes, routes_follow_the_broken_edges_and_return_when_they_are_repaired) {
    Routes routes(shared_graph(Topology::k_regular(2), consecutive(8)), 0);
    EXPECT_EQ(routes.distance(0), 0U);
    EXPECT_EQ(routes.distance(3), 3U);
    EXPECT_EQ(routes.next_hop(3), 1U);
    routes.assume_broken(EdgeSet(std::vector<Edge>{{2, 1}}));
    EXPECT_EQ(routes.distance(3), 5U);
    EXPECT_EQ(routes.next_hop(3), 7U);
    EXPECT_EQ(routes.alternatives(3).size(), 1U);
    routes.assume_broken(EdgeSet(std::vector<Edge>{{2, 1}, {4, 5}}));
    EXPECT_EQ(routes.distance(3), std::nullopt);
    EXPECT_EQ(routes.next_hop(3), std::nullopt);
    EXPECT_TRUE(routes.alternatives(3).empty());
    routes.assume_broken({});
    EXPECT_EQ(routes.distance(3), 3U);
    EXPECT_EQ(routes.next_hop(3), 1U);
}

TEST(Routes, a_full_topology_relays_around_a_broken_edge) {
    Routes routes(shared_graph(Topology(), consecutive(16384)), 0);
    std::vector<Edge> broken{{0, 9}};
    for (Position member = 100; member < 1100; ++member) broken.push_back({9, member});
    routes.assume_broken(EdgeSet(broken));
    EXPECT_EQ(routes.distance(9), 2U);
    for (const auto& [next, hops] : routes.alternatives(9)) {
        EXPECT_EQ(hops, 2U);
        EXPECT_TRUE(next < 100 || next >= 1100);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (Position to = 1; to <= 50; ++to) EXPECT_EQ(routes.distance(to), to == 9 ? 2U : 1U);
    // 20 ms; visiting every pair would be 13 000 million steps.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST(Routes, ties_spread_destinations_over_the_neighbours) {
    // Without a hash of the pair, the first of the eight neighbours would lead to 128 destinations.
    for (const Position me : {0U, 5U, 255U}) {
        Routes routes(shared_graph(Topology::hypercube(), consecutive(256)), me);
        std::map<Position, int> used;
        for (Position to = 0; to < 256; ++to) {
            if (to != me) ++used[*routes.next_hop(to)];
        }
        EXPECT_EQ(used.size(), 8U);
        for (const auto& [next, count] : used) {
            EXPECT_GE(count, 18) << "a fair share is 32";
            EXPECT_LE(count, 46) << "a fair share is 32";
        }
    }
}

TEST(Routes, ties_keep_their_order_when_another_member_leaves) {
    std::vector<Rank> ranks = consecutive(40);
    Routes before(shared_graph(Topology(), ranks), 20);
    std::erase(ranks, Rank(0));
    const auto graph = shared_graph(Topology(), ranks);
    Routes after(graph, 19);
    for (Position to = 21; to < 40; ++to) {
        const auto old = before.alternatives(to);
        if (std::ranges::count(old, Position{0}, &Alternative::next)) continue;
        const auto now = after.alternatives(to - 1);
        ASSERT_EQ(now.size(), old.size());
        for (std::size_t i = 0; i < old.size(); ++i) EXPECT_EQ(now[i].next + 1, old[i].next);
    }
}

TEST(Routes, the_cache_is_bounded_and_its_size_does_not_change_the_routes) {
    const auto graph = shared_graph(Topology::k_regular(4), consecutive(90));
    Routes large(graph, 7);
    Routes small(graph, 7, 3);
    for (int round = 0; round < 3; ++round) {
        for (Position to = 0; to < 90; ++to) {
            if (to == 7) continue;
            EXPECT_TRUE(std::ranges::equal(large.alternatives(to), small.alternatives(to)));
            EXPECT_LE(small.cached(), 3U);
        }
    }
    EXPECT_EQ(large.cached(), 89U);
    EXPECT_EQ(small.cached(), 3U);
    large.assume_broken(EdgeSet(std::vector<Edge>{{0, 1}}));
    EXPECT_EQ(large.cached(), 0U);
}

TEST(Routes, an_edge_that_the_graph_does_not_have_breaks_nothing) {
    const auto graph = shared_graph(Topology::k_regular(2), consecutive(9));
    Routes routes(graph, 0);
    routes.assume_broken(EdgeSet(std::vector<Edge>{{0, 4}, {2, 7}}));
    EXPECT_EQ(routes.distance(4), 4U);
    EXPECT_FALSE(routes.usable(4));
    EXPECT_TRUE(routes.usable(1));
}

}  // namespace
}  // namespace nexar::routing::testing
