#include "engine/neighbourhood.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nexar::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeId numbered(unsigned number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[3] = static_cast<std::byte>(number);
    return NodeId(bytes);
}

/// Node r has rank r.
View view_of(std::uint64_t epoch, const std::vector<unsigned>& ranks) {
    View view{.epoch = Epoch(epoch)};
    for (const unsigned rank : ranks)
        view.members.push_back({.node = numbered(rank), .rank = Rank(rank)});
    return view;
}

TEST(Neighbourhood, follows_the_topology) {
    Neighbourhood ring(routing::Topology::k_regular(2));
    const View view = view_of(1, {0, 1, 3, 4, 7});
    EXPECT_THAT(ring.neighbours(view, numbered(3)), ElementsAre(numbered(1), numbered(4)));
    EXPECT_THAT(ring.neighbours(view, numbered(0)), ElementsAre(numbered(1), numbered(7)));
    EXPECT_THAT(ring.neighbours(view, numbered(2)), IsEmpty()) << "not a member";
}

TEST(Neighbourhood, follows_the_view) {
    Neighbourhood ring(routing::Topology::k_regular(2));
    const View first = view_of(1, {0, 1, 2, 3, 4});
    const View second = view_of(2, {0, 1, 3, 4});
    EXPECT_THAT(ring.neighbours(first, numbered(1)), ElementsAre(numbered(0), numbered(2)));
    EXPECT_THAT(ring.neighbours(second, numbered(1)), ElementsAre(numbered(0), numbered(3)));
    EXPECT_THAT(ring.neighbours(first, numbered(1)), ElementsAre(numbered(0), numbered(2)));
    EXPECT_EQ(ring.graph(second), ring.graph(second)) << "made once";
}

TEST(Neighbourhood, contains_the_members_of_the_own_host) {
    const auto two_each = [](const View& view) {
        std::vector<routing::Host> hosts;
        for (const Member& member : view.members) hosts.emplace_back(member.rank.value() % 3);
        return hosts;
    };
    Neighbourhood ring(routing::Topology::k_regular(2), two_each);
    const View view = view_of(1, {0, 1, 2, 3, 4, 5});
    EXPECT_THAT(ring.neighbours(view, numbered(1)),
                ElementsAre(numbered(0), numbered(2), numbered(4)));
}

}  // namespace
}  // namespace nexar::engine
