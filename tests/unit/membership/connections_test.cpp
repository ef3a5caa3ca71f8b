#include "membership/connections.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace nexar::membership {
namespace {

using Position = Connections::Position;

NodeId node(Position number) {
    std::array<std::byte, 16> bytes{};
    // The order of the ids is not that of the positions.
    bytes[0] = static_cast<std::byte>(97U * (number + 1U));
    return NodeId(bytes);
}

View view_of(Position members) {
    View view{.epoch = Epoch(1)};
    for (Position i = 0; i < members; ++i)
        view.members.push_back({.node = node(i), .rank = Rank(i)});
    return view;
}

/// 0-1-2-3-4 and 1-3; also names strangers, repeats, and the member itself.
std::vector<NodeId> neighbours(const View& /*view*/, const NodeId& of) {
    const std::vector<std::vector<Position>> lists = {{1}, {3, 0, 2, 3}, {1, 3}, {4, 2, 1}, {3}};
    std::vector<NodeId> nodes{node(40), of};
    for (Position i = 0; i < lists.size(); ++i) {
        if (node(i) != of) continue;
        for (const Position one : lists[i]) nodes.push_back(node(one));
    }
    return nodes;
}

TEST(Connections, lists_each_neighbour_once_in_ascending_order) {
    const Connections connections(view_of(5), neighbours);
    const std::vector<std::vector<Position>> expected = {{1}, {0, 2, 3}, {1, 3}, {1, 2, 4}, {3}};
    for (Position i = 0; i < 5; ++i) {
        const auto found = connections.of(i);
        EXPECT_EQ(std::vector<Position>(found.begin(), found.end()), expected[i]) << i;
    }
    EXPECT_TRUE(connections.between(3, 1));
    EXPECT_FALSE(connections.between(0, 2));
    EXPECT_FALSE(connections.between(2, 2));
}

TEST(Connections, are_unknown_in_a_full_mesh) {
    EXPECT_FALSE(Connections().known());
    EXPECT_TRUE(Connections(view_of(1), neighbours).known());
}

TEST(Connections, no_path_leads_through_a_member_that_is_down) {
    const Connections connections(view_of(5), neighbours);
    const auto reached = [&](Position from, std::vector<Position> down) {
        std::vector<bool> flags(5);
        for (const Position one : down) flags[one] = true;
        return connections.reach(from, flags);
    };
    EXPECT_EQ(reached(0, {}), std::vector<bool>({true, true, true, true, true}));
    EXPECT_EQ(reached(0, {2}), std::vector<bool>({true, true, false, true, true}));
    EXPECT_EQ(reached(0, {3}), std::vector<bool>({true, true, true, false, false}));
    EXPECT_EQ(reached(4, {1}), std::vector<bool>({false, false, true, true, true}));
    EXPECT_EQ(reached(2, {1, 3}), std::vector<bool>({false, false, true, false, false}));
}

TEST(ConnectionsDeathTest, a_neighbour_that_does_not_know_it_is_a_bug) {
    const auto one_way = [](const View& /*view*/, const NodeId& of) {
        return of == node(0) ? std::vector{node(1)} : std::vector<NodeId>();
    };
    EXPECT_DEATH(Connections(view_of(2), one_way), "symmetric");
}

}  // namespace
}  // namespace nexar::membership
