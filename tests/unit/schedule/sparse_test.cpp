// Collectives in sparse topologies: the checker proves them for rings and trees of each topology,
// and their messages travel along links.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/random.hpp"
#include "support/seed.hpp"
#include "unit/schedule/cases.hpp"
#include "unit/schedule/sparse.hpp"

namespace nexar::schedule::testing {
namespace {

/// The algorithms whose schedules depend on the topology.
std::vector<Algorithm> following() {
    std::vector<Algorithm> all;
    for (const Algorithm& algorithm : algorithms()) {
        const std::string_view name = algorithm.name;
        if (algorithm.peers == Peers::next || algorithm.peers == Peers::tree ||
            name == "scatter_all_gather" || name == "reduce_scatter_all_gather")
            all.push_back(algorithm);
    }
    return all;
}

class SparseSchedules : public ::testing::TestWithParam<Algorithm> {};

void expect_proven_for_roots(Case c) {
    for (c.root = 0; c.root < (rooted(c.algorithm->operation) ? c.world : 1); ++c.root) {
        for (const std::uint64_t count :
             std::set<std::uint64_t>{0, 1, c.world - 1, c.world, 1009}) {
            c.count = c.algorithm->operation == Collective::barrier ? 0 : count;
            for (const bool in_place : {false, true}) {
                c.in_place = in_place;
                c.segment = 0;
                ASSERT_EQ(verdict(c), "");
                if (!c.algorithm->traits.segments) continue;
                c.segment = some_segment(c);
                ASSERT_EQ(verdict(c), "");
            }
        }
    }
}

TEST_P(SparseSchedules, are_proven_in_every_topology) {
    for (const routing::Topology& topology : sparse_topologies()) {
        for (std::uint32_t world = 1; world <= (kSanitized ? 9U : 17U); ++world) {
            Case c{.algorithm = &GetParam(), .world = world};
            c.hops = hops_of(topology, world);
            SCOPED_TRACE(topology.text());
            expect_proven_for_roots(c);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(SparseSchedules, are_proven_among_some_members_of_a_cluster) {
    Random random(test_seed(7));
    for (const routing::Topology& topology : sparse_topologies()) {
        const Hops all = hops_of(topology, 40);
        for (std::uint32_t world = 1; world <= 9; ++world) {
            Case c{.algorithm = &GetParam(), .world = world};
            c.hops = all.among(some_ranks(40, world, random));
            SCOPED_TRACE(topology.text());
            expect_proven_for_roots(c);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(SparseSchedules, send_only_along_links_if_peers_are_neighbours) {
    for (const routing::Topology& topology : sparse_topologies()) {
        for (const std::uint32_t world : {5U, 8U, 12U, 13U, 16U, 34U}) {
            Case c{.algorithm = &GetParam(), .world = world, .root = world / 3, .count = 1000};
            c.hops = hops_of(topology, world);
            if (c.hops.none()) continue;
            const bool closed = topology != routing::Topology::hypercube() || world % 2 == 0;
            const bool tree = GetParam().peers == Peers::tree;
            if (!tree && (GetParam().peers != Peers::next || !closed)) continue;
            if (GetParam().operation == Collective::barrier) c.count = 0;
            for (const Sent& message : sent(schedules(c, requests(c)))) {
                ASSERT_TRUE(c.hops.adjacent(message.from, message.to))
                    << topology.text() << " " << to_text(c);
            }
        }
    }
}

std::string name_of(const ::testing::TestParamInfo<Algorithm>& test) {
    return full_name(test.param);
}

INSTANTIATE_TEST_SUITE_P(Following, SparseSchedules, ::testing::ValuesIn(following()), name_of);

class PeersOf : public ::testing::TestWithParam<Algorithm> {};

/// Whether an algorithm with these peers may send from one rank to the other.
bool allowed(const Case& c, const Request& request, const Sent& message) {
    const std::uint32_t forward = distance(message.from, message.to, c.world);
    const std::uint32_t near = std::min(forward, c.world - forward);
    const auto steps = [&](std::uint32_t one, std::uint32_t other) {
        return distance(request.order.position_of(one), request.order.position_of(other), c.world);
    };
    switch (c.algorithm->peers) {
        case Peers::next_rank:
            return near == 1;
        case Peers::next:
            return steps(message.from, message.to) == 1;
        case Peers::tree:
            return request.tree->parent(message.from) == message.to ||
                   request.tree->parent(message.to) == message.from;
        case Peers::shifted:
            return std::has_single_bit(forward) || std::has_single_bit(c.world - forward);
        default:
            return true;
    }
}

TEST_P(PeersOf, are_what_the_registry_says) {
    for (std::uint32_t world = 2; world <= 17; ++world) {
        Case c{.algorithm = &GetParam(), .world = world, .root = world / 2, .count = 1000};
        if (GetParam().operation == Collective::barrier) c.count = 0;
        c.shuffled = world;
        c.links = placements(GetParam(), world).front();
        const auto asked = requests(c);
        std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
        for (const Sent& message : sent(schedules(c, asked))) {
            ASSERT_TRUE(allowed(c, asked[0], message))
                << message.from << " -> " << message.to << " " << to_text(c);
            pairs.emplace(message.from, message.to);
        }
        if (GetParam().peers != Peers::all) continue;
        EXPECT_EQ(pairs.size(), world * (world - 1)) << to_text(c);
    }
}

INSTANTIATE_TEST_SUITE_P(All, PeersOf,
                         ::testing::ValuesIn(algorithms().begin(), algorithms().end()), name_of);

}  // namespace
}  // namespace nexar::schedule::testing
