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
                                 .addresses = {Address::parse("10.0.0.7:1").value()},
                                 .host = "node7"}},
                    .witness = Witness{.seed = node(9), .incarnation = Incarnation(1)},
                    .next_rank = Rank(3),
                    .spent = {{.uses = 2}},
                    .left = {Rank(2)}};
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
    EXPECT_NE(view, changed([](View& x) { x.members[0].host = "node8"; }));
    EXPECT_NE(view, changed([](View& x) { x.members[0].key_hash[31] = std::byte{1}; }));
    EXPECT_NE(view, changed([](View& x) { x.members[0].token[15] = std::byte{1}; }));
    EXPECT_NE(view, changed([](View& x) { x.next_rank = Rank(4); }));
    EXPECT_NE(view, changed([](View& x) { x.spent[0].uses = 3; }));
    EXPECT_NE(view, changed([](View& x) { x.spent[0].token[0] = std::byte{1}; }));
    EXPECT_NE(view, changed([](View& x) { x.left.clear(); }));
}

View of_size(std::uint32_t members, bool with_witness) {
    View view{.epoch = Epoch(1), .next_rank = Rank(members)};
    view.members.reserve(members);
    for (std::uint32_t i = 0; i < members; ++i) {
        view.members.push_back({.node = node(i + 1), .rank = Rank(i)});
    }
    if (with_witness) view.witness = Witness{.seed = node(200), .incarnation = Incarnation(1)};
    return view;
}

TEST(View, the_witness_votes_only_if_the_number_of_members_is_even) {
    for (std::uint32_t members = 0; members <= 16; ++members) {
        SCOPED_TRACE(members);
        EXPECT_EQ(of_size(members, true).witness_votes(), members % 2 == 0);
        EXPECT_FALSE(of_size(members, false).witness_votes());
        EXPECT_EQ(of_size(members, true).voters(), members % 2 == 0 ? members + 1 : members);
        EXPECT_EQ(of_size(members, false).voters(), members);
    }
}

TEST(View, two_majorities_always_share_a_voter) {
    for (std::uint32_t members = 0; members <= 16; ++members) {
        for (const bool with_witness : {false, true}) {
            SCOPED_TRACE(members);
            const View view = of_size(members, with_witness);
            EXPECT_GT(2 * view.majority(), view.voters());
            EXPECT_LE(2 * (view.majority() - 1), view.voters()) << "no more than needed";
        }
    }
}

// Rows: members, majority without a witness, majority with one.
TEST(View, majority_of_small_worlds) {
    constexpr std::array<std::array<std::size_t, 3>, 7> kRows{
        {{0, 1, 1}, {1, 1, 1}, {2, 2, 2}, {3, 2, 2}, {4, 3, 3}, {5, 3, 3}, {6, 4, 4}}};
    for (const auto& [members, alone, witnessed] : kRows) {
        SCOPED_TRACE(members);
        EXPECT_EQ(of_size(static_cast<std::uint32_t>(members), false).majority(), alone);
        EXPECT_EQ(of_size(static_cast<std::uint32_t>(members), true).majority(), witnessed);
    }
    // Half of the members decide only together with the witness.
    EXPECT_EQ(of_size(4, true).majority(), 2U + 1U);
    EXPECT_EQ(of_size(2, true).majority(), 1U + 1U);
}

}  // namespace
}  // namespace nexar
