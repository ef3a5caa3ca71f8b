#include "base/view.hpp"

#include <gtest/gtest.h>

namespace nexar {
namespace {

NodeId node(unsigned first) {
    return NodeId(std::array<std::byte, NodeId::kBytes>{static_cast<std::byte>(first)});
}

TEST(View, finds_a_member_by_its_node) {
    const View view{
        .epoch = Epoch(2),
        .members = {{.node = node(7), .rank = Rank(0)}, {.node = node(3), .rank = Rank(4)}}};
    ASSERT_NE(view.find(node(3)), nullptr);
    EXPECT_EQ(view.find(node(3))->rank, Rank(4));
    EXPECT_EQ(view.find(node(7)), &view.members[0]);
    EXPECT_EQ(view.find(node(0)), nullptr);
    EXPECT_EQ(View{}.find(NodeId()), nullptr);
}

TEST(View, comparison_covers_every_field) {
    const View view{.epoch = Epoch(2),
                    .members = {{.node = node(7),
                                 .incarnation = Incarnation(1),
                                 .rank = Rank(0),
                                 .addresses = {Address::parse("10.0.0.7:1").value()}}},
                    .witness = Witness{.seed = node(9), .incarnation = Incarnation(1)}};
    const auto changed = [&](auto change) {
        View other = view;
        change(other);
        return other;
    };
    EXPECT_EQ(view, changed([](View&) {}));
    EXPECT_NE(view, changed([](View& x) { x.epoch = Epoch(3); }));
    EXPECT_NE(view, changed([](View& x) { x.witness.reset(); }));
    EXPECT_NE(view, changed([](View& x) { x.witness->incarnation = Incarnation(2); }));
    EXPECT_NE(view, changed([](View& x) { x.members[0].incarnation = Incarnation(2); }));
    EXPECT_NE(view, changed([](View& x) { x.members[0].rank = Rank(1); }));
    EXPECT_NE(view, changed([](View& x) { x.members[0].addresses.clear(); }));
}

}  // namespace
}  // namespace nexar
