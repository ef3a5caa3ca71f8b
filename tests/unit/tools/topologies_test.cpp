// The parts of `nexar sim topologies`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "routing/routes.hpp"
#include "runtime/topology_hops.hpp"
#include "schedule/registry.hpp"
#include "support/seed.hpp"
#include "topologies/compare.hpp"
#include "topologies/flows.hpp"
#include "topologies/relay_load.hpp"

namespace nexar {
namespace {

using routing::Position;
using routing::Topology;
using schedule::Collective;

std::shared_ptr<const routing::Graph> graph_of(const Topology& topology, std::uint32_t members) {
    std::vector<Rank> ranks;
    for (std::uint32_t rank = 0; rank < members; ++rank) ranks.emplace_back(3 * rank);
    return std::make_shared<const routing::Graph>(topology, ranks);
}

const std::vector<Topology> sparse_topologies{Topology::k_regular(2), Topology::k_regular(4),
                                              Topology::k_regular(8), Topology::hypercube()};

/// Sends messages from relay to relay, as members do.
class Walked {
public:
    explicit Walked(const std::shared_ptr<const routing::Graph>& graph)
        : forwarded_(graph->size()) {
        for (Position member = 0; member < graph->size(); ++member) {
            routes_.emplace_back(graph, member);
        }
    }
    void send(Position from, Position to, double bytes) {
        sent_ += bytes;
        Position at = *routes_[from].next_hop(to);
        for (Position before = from; at != to;) {
            forwarded_[at] += bytes;
            const Position next = *routes_[at].next_hop(to, 0, before);
            before = at;
            at = next;
        }
    }
    double load() const {
        return *std::ranges::max_element(forwarded_) /
               (sent_ / static_cast<double>(forwarded_.size()));
    }

private:
    std::vector<routing::Routes> routes_;
    std::vector<double> forwarded_;
    double sent_ = 0;
};

TEST(RelayLoad, is_that_of_messages_which_follow_the_routes) {
    Random random(test_seed(3));
    for (const Topology& topology : sparse_topologies) {
        for (const std::uint32_t members : {3U, 7U, 12U, 16U, 33U}) {
            const auto graph = graph_of(topology, members);
            if (graph->complete()) continue;
            Walked uniform(graph);
            Walked some(graph);
            std::vector<Flow> flows;
            for (Position from = 0; from < members; ++from) {
                for (Position to = 0; to < members; ++to) {
                    if (from == to) continue;
                    uniform.send(from, to, 1);
                    if (to > 0 && !random.chance(0.2)) continue;
                    flows.push_back({from, to, static_cast<double>(1 + random.below(1000))});
                    some.send(from, to, flows.back().bytes);
                }
            }
            const GraphSurvey found = survey(*graph, std::vector<std::vector<Flow>>{flows});
            EXPECT_NEAR(found.uniform_load, uniform.load(), 1e-9) << topology.text() << members;
            EXPECT_NEAR(found.loads[0], some.load(), 1e-9) << topology.text() << members;
        }
    }
}

TEST(GraphSurvey, has_the_distances_of_the_graph) {
    for (const Topology& topology : sparse_topologies) {
        for (const std::uint32_t members : {16U, 33U, 100U}) {
            const auto graph = graph_of(topology, members);
            const GraphSurvey found = survey(*graph);
            const routing::Distances exact = routing::measure(*graph);
            EXPECT_EQ(found.diameter, exact.diameter) << topology.text();
            EXPECT_NEAR(found.mean_hops, exact.average, 1e-9) << topology.text();
        }
    }
    const GraphSurvey full = survey(*graph_of(Topology(), 50));
    EXPECT_EQ(full.diameter, 1U);
    EXPECT_EQ(full.uniform_load, 0);
}

TEST(HopsOfTopology, are_those_of_its_graph) {
    for (const Topology& topology : sparse_topologies) {
        for (const std::uint32_t members : {2U, 9U, 40U}) {
            const auto graph = graph_of(topology, members);
            const schedule::Hops hops = runtime::hops_of(topology, *graph);
            if (graph->complete()) {
                EXPECT_TRUE(hops.none());
                continue;
            }
            if (hops.none()) {
                EXPECT_EQ(graph->edges(), std::uint64_t{members} * (members - 1) / 2);
                continue;
            }
            for (Position one = 0; one < members; ++one) {
                EXPECT_EQ(hops.from(one), routing::search(*graph, one).hops);
            }
            const std::uint32_t links =
                members % 2 == 0 || topology != Topology::hypercube() ? members : members - 1;
            for (std::uint32_t i = 0; i < links; ++i) {
                EXPECT_TRUE(graph->adjacent(hops.order().rank_at(i),
                                            hops.order().rank_at((i + 1) % members)));
            }
        }
    }
}

std::map<std::pair<Position, Position>, double> merged(const std::vector<Flow>& flows) {
    std::map<std::pair<Position, Position>, double> all;
    for (const Flow& flow : flows) all[{flow.from, flow.to}] += flow.bytes;
    return all;
}

TEST(CollectiveFlows, are_the_messages_of_all_members) {
    const auto graph = graph_of(Topology::hypercube(), 12);
    const schedule::Hops hops = runtime::hops_of(Topology::hypercube(), *graph);
    const schedule::Workload one{.operation = Collective::broadcast,
                                 .world = 12,
                                 .count = 100,
                                 .largest = 9,
                                 .element_bytes = 4};
    const schedule::Choice choice{
        .algorithm = schedule::find_algorithm(Collective::broadcast, "spanning_tree")};
    const auto counted = flows_of(choice, one, hops);
    ASSERT_TRUE(counted);
    const auto flows = merged(counted->flows);
    EXPECT_EQ(flows.size(), 11U);
    for (const auto& [ends, bytes] : flows) {
        EXPECT_TRUE(graph->adjacent(ends.first, ends.second));
        EXPECT_EQ(bytes, 400);
    }
}

TEST(CollectiveFlows, of_members_that_do_the_same_are_those_of_one_repeated) {
    // In the larger world the schedules have too many steps to count all of them.
    for (const auto& [operation, name] :
         {std::pair(Collective::all_reduce, "ring"), std::pair(Collective::all_gather, "ring"),
          std::pair(Collective::reduce_scatter, "ring"),
          std::pair(Collective::all_to_all, "bruck")}) {
        for (const std::uint32_t members : {64U, 2048U}) {
            const auto graph = graph_of(Topology::hypercube(), members);
            const schedule::Hops hops = runtime::hops_of(Topology::hypercube(), *graph);
            const schedule::Workload one{.operation = operation,
                                         .world = members,
                                         .count = members,
                                         .largest = 1,
                                         .element_bytes = 4};
            const auto counted =
                flows_of({.algorithm = schedule::find_algorithm(operation, name)}, one, hops);
            ASSERT_TRUE(counted) << name;
            std::vector<double> sent(members);
            std::vector<double> received(members);
            std::set<Position> distances;
            for (const Flow& flow : counted->flows) {
                sent[flow.from] += flow.bytes;
                received[flow.to] += flow.bytes;
                const Position distance =
                    operation == Collective::all_to_all
                        ? schedule::distance(flow.from, flow.to, members)
                        : schedule::distance(hops.order().position_of(flow.from),
                                             hops.order().position_of(flow.to), members);
                distances.insert(distance);
            }
            for (Position member = 0; member < members; ++member) {
                EXPECT_EQ(sent[member], sent[0]) << name;
                EXPECT_EQ(received[member], sent[0]) << name;
            }
            EXPECT_EQ(distances.size(), operation == Collective::all_to_all
                                            ? static_cast<std::size_t>(std::bit_width(members - 1))
                                            : 1U);
        }
    }
}

using Edges = std::set<std::pair<Position, Position>>;

/// The edges that a group of the picture in the documentation draws.
Edges drawn(const std::string& picture, const std::string& group) {
    Edges edges;
    const std::size_t begin = picture.find("<g id=\"" + group + "\"");
    const std::size_t end = picture.find("</g>", begin);
    const std::string mark = "data-edge=\"";
    for (std::size_t at = picture.find(mark, begin); at < end; at = picture.find(mark, at + 1)) {
        std::istringstream text(picture.substr(at + mark.size(), 10));
        std::pair<Position, Position> edge;
        text >> edge.first >> edge.second;
        EXPECT_TRUE(edges.insert(edge).second);
    }
    return edges;
}

TEST(TopologyPicture, in_the_documentation_has_the_edges_of_the_topologies) {
    std::ifstream file(NEXAR_SOURCE_DIR "/docs/images/topologies.svg");
    const std::string picture{std::istreambuf_iterator<char>(file), {}};
    for (const auto& [group, text] :
         {std::pair("full", "full"), std::pair("k_regular", "k_regular:4"),
          std::pair("hypercube", "hypercube")}) {
        std::vector<Rank> ranks;
        for (std::uint32_t rank = 0; rank < 12; ++rank) ranks.emplace_back(rank);
        const routing::Graph graph(Topology::parse(text).value(), ranks);
        Edges edges;
        for (Position one = 0; one < 12; ++one) {
            for (const Position other : graph.neighbours(one)) {
                if (one < other) edges.emplace(one, other);
            }
        }
        EXPECT_EQ(drawn(picture, group), edges) << text;
        const std::string caption =
            std::to_string(graph.edges()) + " connections, at most " +
            std::to_string(
                graph.degree(std::ranges::max_element(
                                 ranks, {}, [&](Rank rank) { return graph.degree(rank.value()); })
                                 ->value())) +
            " per member, diameter " + std::to_string(routing::measure(graph).diameter);
        EXPECT_THAT(picture, ::testing::HasSubstr(caption)) << text;
    }
}

TEST(Forecast, of_neighbours_has_no_relays) {
    TopologyQuestion question{.worlds = {40},
                              .topologies = {Topology(), Topology::k_regular(4)},
                              .operations = {Collective::all_reduce, Collective::all_to_all},
                              .sizes = {4, 1U << 20U}};
    question.profile.forced = "all_reduce=ring";
    const auto all = forecasts(question);
    ASSERT_TRUE(all) << all.error().what();
    ASSERT_EQ(all->size(), 2U);
    const TopologyForecast& full = (*all)[0];
    EXPECT_EQ(full.connections, 780U);
    EXPECT_EQ(full.most_connections, 39U);
    const TopologyForecast& sparse = (*all)[1];
    EXPECT_EQ(sparse.topology, Topology::k_regular(4));
    EXPECT_LE(sparse.most_connections, 4U);
    EXPECT_GT(sparse.mean_hops, 1);
    EXPECT_GT(sparse.uniform_load, sparse.mean_hops - 1);
    ASSERT_EQ(sparse.collectives.size(), 4U);
    EXPECT_EQ(sparse.collectives[1].algorithm, "ring");
    EXPECT_EQ(sparse.collectives[1].relay_load, 0);
    // A single element cannot be divided among 40 members.
    EXPECT_EQ(sparse.collectives[2].algorithm, "");
    EXPECT_EQ(sparse.collectives[3].relay_load, sparse.uniform_load);
    EXPECT_GT(sparse.collectives[3].seconds, full.collectives[3].seconds);
    EXPECT_EQ(full.collectives[3].relay_load, 0);
}

TEST(Forecast, fails_if_a_forced_algorithm_cannot_run) {
    TopologyQuestion question{.worlds = {8},
                              .topologies = {Topology()},
                              .operations = {Collective::broadcast},
                              .sizes = {64}};
    question.profile.forced = "broadcast=spanning_tree";
    EXPECT_FALSE(forecasts(question));
}

}  // namespace
}  // namespace nexar
