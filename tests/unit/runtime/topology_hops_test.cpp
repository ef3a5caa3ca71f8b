#include "runtime/topology_hops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nexar/nexar.hpp>
#include <numeric>
#include <vector>

#include "support/close_together.hpp"

namespace nexar::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Members with these ranks in the cluster, each on a host of its own.
std::vector<Member> members_with(const std::vector<unsigned>& ranks) {
    std::vector<Member> members;
    for (const unsigned rank : ranks) {
        Member& member = members.emplace_back();
        member.rank = Rank(rank);
        member.addresses.push_back(
            Address::parse("10.0.0." + std::to_string(rank + 1) + ":7000").value());
    }
    return members;
}

schedule::Profile profile_of(const std::vector<unsigned>& ranks,
                             const engine::Neighbourhood* neighbourhood) {
    schedule::Profile profile;
    set_members(profile, members_with(ranks), neighbourhood);
    return profile;
}

TEST(TopologyHops, are_those_of_a_ring_of_the_members) {
    const engine::Neighbourhood ring(routing::Topology::k_regular(2));
    const schedule::Hops hops = profile_of({0, 2, 3, 5, 8}, &ring).hops;
    EXPECT_THAT(hops.from(0), ElementsAre(0, 1, 2, 2, 1));
    EXPECT_THAT(hops.from(3), ElementsAre(2, 2, 1, 0, 1));
}

TEST(TopologyHops, follow_the_ranks_in_the_cluster_and_not_those_in_the_communicator) {
    const engine::Neighbourhood ring(routing::Topology::k_regular(2));
    const schedule::Hops hops = profile_of({8, 3, 0, 5, 2}, &ring).hops;
    EXPECT_THAT(hops.from(0), ElementsAre(0, 2, 1, 1, 2));
    EXPECT_TRUE(hops.adjacent(1, 3));
    EXPECT_FALSE(hops.adjacent(1, 2));
}

TEST(TopologyHops, do_not_exist_where_all_pairs_connect) {
    const engine::Neighbourhood full{routing::Topology()};
    const engine::Neighbourhood wide(routing::Topology::k_regular(4));
    EXPECT_TRUE(profile_of({0, 1, 2, 3, 4, 5}, nullptr).hops.none());
    EXPECT_TRUE(profile_of({0, 1, 2, 3, 4, 5}, &full).hops.none());
    EXPECT_TRUE(profile_of({0, 1, 2, 3, 4}, &wide).hops.none());
    EXPECT_FALSE(profile_of({0, 1, 2, 3, 4, 5}, &wide).hops.none());
}

TEST(TopologyHops, of_members_that_share_memory_are_one) {
    const auto pairs = [](const View& view) {
        std::vector<routing::Host> hosts;
        for (const Member& member : view.members) hosts.emplace_back(member.rank.value() % 3);
        return hosts;
    };
    const engine::Neighbourhood ring(routing::Topology::k_regular(2), pairs);
    EXPECT_THAT(profile_of({0, 1, 2, 3, 4, 5}, &ring).hops.from(0), ElementsAre(0, 1, 2, 1, 2, 1));
}

TEST(TopologyHops, of_members_that_this_node_has_forgotten_are_unknown) {
    const engine::Neighbourhood ring(routing::Topology::k_regular(2));
    EXPECT_TRUE(profile_of({0, 1, 2, 0, 3}, &ring).hops.none());
}

/// Runs `call` with every node's world, rank after rank, and waits for all.
template <class Call>
void on_each(std::vector<Node>& nodes, const Call& call) {
    std::vector<Work<>> works;
    works.reserve(nodes.size());
    for (Node& node : nodes) works.push_back(call(node.world()));
    wait_all(works);
}

NodeOptions along_the_tree(const std::string& topology) {
    return {.collective_algorithm =
                "broadcast=spanning_tree,all_reduce=spanning_tree,"
                "barrier=spanning_tree",
            .topology = topology,
            .link = "quic"};
}

TEST(TopologyHops, let_nodes_run_collectives_along_a_tree_of_their_links) {
    for (const std::string topology : {"k_regular:2", "hypercube"}) {
        std::vector<Node> nodes = local_cluster(7, along_the_tree(topology));
        std::vector<std::vector<int>> vectors(nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            vectors[i].resize(20'000, static_cast<int>(i * i));
        }
        on_each(nodes, [&](const Communicator& world) {
            return world.broadcast(vectors[static_cast<std::size_t>(world.rank())], 5);
        });
        for (const auto& vector : vectors) EXPECT_THAT(vector, ::testing::Each(25)) << topology;
        for (std::size_t i = 0; i < nodes.size(); ++i) std::ranges::fill(vectors[i], int(i * i));
        on_each(nodes, [&](const Communicator& world) {
            return world.all_reduce(vectors[static_cast<std::size_t>(world.rank())], sum);
        });
        for (const auto& vector : vectors) EXPECT_THAT(vector, ::testing::Each(91)) << topology;
        on_each(nodes, [](const Communicator& world) { return world.barrier(); });
        close_together(nodes);
    }
}

TEST(TopologyHops, of_a_part_of_a_world_are_those_of_the_world) {
    std::vector<Node> nodes = local_cluster(7, along_the_tree("k_regular:2"));
    // Ranks 0 and 4 are three hops apart, so the part has a tree as well.
    const std::vector<int> part{0, 4};
    std::vector<std::optional<Communicator>> parts;
    for (const Node& node : nodes) parts.push_back(node.world().subgroup(part));
    std::vector<int> values{3, 4};
    std::vector<Work<>> works;
    for (std::size_t i = 0; i < part.size(); ++i) {
        const auto& made = parts[static_cast<std::size_t>(part[i])];
        ASSERT_TRUE(made);
        works.push_back(made->all_reduce(std::span(&values[i], 1), sum));
    }
    wait_all(works);
    EXPECT_THAT(values, ElementsAre(7, 7));
    close_together(nodes);
}

TEST(TopologyHops, do_not_exist_in_a_full_mesh_so_a_tree_is_refused) {
    try {
        const std::vector<Node> nodes = local_cluster(2, along_the_tree("full"));
        nodes[0].world().barrier().wait();
        FAIL() << "the barrier ran";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_config);
        EXPECT_THAT(error.what(), HasSubstr("this cluster is fully connected"));
    }
}

}  // namespace
}  // namespace nexar::runtime
