#include "routing/link_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link_state_parts.hpp"
#include "wire/limits.hpp"

namespace nexar::routing::link_state_tests {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Member 0 of a view of the ranks 0 to 9, and what it sends.
struct OneNode {
    FakeSigner signer{Rank(0)};
    LinkStates states{kCluster, signer};
    TimePoint now{milliseconds(1000)};

    OneNode(std::initializer_list<std::uint32_t> neighbours = {}) {
        states.adopt(now, view_of(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), Rank(0));
        for (const std::uint32_t rank : neighbours) states.connected(now, Rank(rank));
    }

    Result<void> handle(std::uint32_t from, const wire::LinkState& state) {
        return states.handle(now, Rank(from), state);
    }

    void down(std::initializer_list<std::uint32_t> values) { states.set_down(now, ranks(values)); }

    /// The receivers, origins and versions of all states that it sends now.
    std::vector<std::array<std::uint64_t, 3>> sent() {
        std::vector<std::array<std::uint64_t, 3>> all;
        while (const auto next = states.poll_outgoing(now)) {
            all.push_back({next->to.value(), next->state->origin.value(), next->state->version});
            last = next->state;
        }
        std::ranges::sort(all);
        return all;
    }

    LinkStates::State last{};  // that was sent
};

using Sent = std::array<std::uint64_t, 3>;

TEST(LinkStates, begins_without_broken_links_and_says_nothing) {
    OneNode node{1, 2};
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_THAT(node.sent(), IsEmpty());
    EXPECT_FALSE(node.states.next_deadline());
    EXPECT_EQ(node.states.changes(), 0U);
}

TEST(LinkStates, tells_all_neighbours_which_ones_it_cannot_reach) {
    OneNode node{1, 2};
    node.down({3, 2, 3});
    EXPECT_EQ(node.states.broken(), pairs({{0, 2}, {0, 3}}));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}, Sent{2, 0, 1}));
    EXPECT_EQ(*node.last, signed_state(0, 1, ranks({2, 3})));
    EXPECT_FALSE(node.states.next_deadline());
}

TEST(LinkStates, merges_changes_within_20_ms) {
    OneNode node{1};
    node.down({3});
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}));
    for (std::uint32_t i = 4; i < 9; ++i) {
        node.now += milliseconds(1);
        node.down({i});
        EXPECT_THAT(node.sent(), IsEmpty());
        EXPECT_EQ(node.states.broken(), pairs({{0, i}})) << "it routes by the change at once";
    }
    ASSERT_EQ(node.states.next_deadline(), TimePoint(milliseconds(1020)));
    node.now = TimePoint(milliseconds(1020));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 2}));
    EXPECT_EQ(node.last->down, ranks({8}));
    EXPECT_FALSE(node.states.next_deadline());
}

TEST(LinkStates, says_nothing_about_a_change_that_is_undone_in_time) {
    OneNode node{1};
    node.down({3});
    EXPECT_EQ(node.sent().size(), 1U);
    node.down({});
    node.down({3});
    node.now += milliseconds(100);
    EXPECT_THAT(node.sent(), IsEmpty());
    node.down({});
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 2}));
    EXPECT_THAT(node.states.broken(), IsEmpty());
}

TEST(LinkStates, limits_its_broken_links) {
    OneNode node{1};
    std::set<std::uint32_t> all;
    std::vector<Rank> many;
    for (std::uint32_t i = 0; i < 100; ++i) {
        all.insert(i);
        if (i != 0) many.emplace_back(i);
    }
    node.states.adopt(node.now, view_of(2, all), Rank(0));
    node.states.set_down(node.now, many);
    EXPECT_EQ(node.sent().size(), 1U);
    EXPECT_EQ(node.last->down.size(), wire::kMaxDownLinks);
    EXPECT_EQ(node.states.broken().size(), wire::kMaxDownLinks);
}

TEST(LinkStates, forwards_a_new_state_to_all_neighbours_except_its_sender) {
    OneNode node{1, 2, 3};
    EXPECT_TRUE(node.handle(1, signed_state(4, 7, ranks({5}))));
    EXPECT_EQ(node.states.broken(), pairs({{4, 5}}));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 4, 7}, Sent{3, 4, 7}));
    EXPECT_EQ(*node.last, signed_state(4, 7, ranks({5})));
}

TEST(LinkStates, verifies_each_version_once) {
    OneNode node{1, 2, 3};
    for (const std::uint32_t from : {1U, 2U, 3U, 1U}) {
        EXPECT_TRUE(node.handle(from, signed_state(4, 7, ranks({5}))));
    }
    EXPECT_EQ(node.signer.verifications(), 1);
    EXPECT_THAT(node.sent(), IsEmpty()) << "all neighbours have sent it themselves";
}

TEST(LinkStates, answers_an_old_version_with_the_newest_once) {
    OneNode node{1, 2};
    EXPECT_TRUE(node.handle(1, signed_state(4, 7, {})));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 4, 7}));
    node.states.connected(node.now, Rank(3));
    EXPECT_THAT(node.sent(), IsEmpty()) << "the state is empty";
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(node.handle(3, signed_state(4, 6, ranks({5}))));
        EXPECT_TRUE(node.handle(2, signed_state(4, 6, ranks({5}))));
        EXPECT_TRUE(node.handle(1, signed_state(4, 6, ranks({5})))) << "it sent the newest itself";
    }
    EXPECT_THAT(node.sent(), ElementsAre(Sent{3, 4, 7}));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_EQ(node.signer.verifications(), 1);
}

TEST(LinkStates, sends_a_new_neighbour_all_states_that_are_not_empty) {
    OneNode node{1};
    node.down({9});
    EXPECT_TRUE(node.handle(1, signed_state(4, 7, ranks({5}))));
    EXPECT_TRUE(node.handle(1, signed_state(6, 3, {})));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}));
    node.states.connected(node.now, Rank(2));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 0, 1}, Sent{2, 4, 7}));
    node.states.disconnected(Rank(2));
    node.states.connected(node.now, Rank(2));
    EXPECT_EQ(node.sent().size(), 2U) << "the former link may have lost them";
}

TEST(LinkStates, forwards_among_neighbours_only_what_the_origin_cannot_tell_them) {
    OneNode node{1, 2, 3};
    node.states.set_complete(true);
    ASSERT_TRUE(node.handle(1, signed_state(1, 1, ranks({2, 7}))));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 1, 1}));
    node.states.connected(node.now, Rank(7));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{7, 1, 1}));
    node.states.connected(node.now, Rank(8));
    EXPECT_THAT(node.sent(), IsEmpty());
    node.down({9});
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}, Sent{2, 0, 1}, Sent{3, 0, 1}, Sent{7, 0, 1},
                                         Sent{8, 0, 1}));
    // Its origin may have a newer one, which it then sends.
    node.states.connected(node.now, Rank(1));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}, Sent{1, 1, 1}));
}

TEST(LinkStates, keeps_only_the_newest_state_for_a_neighbour) {
    OneNode node{1, 2};
    for (std::uint64_t version = 1; version <= 10; ++version) {
        EXPECT_TRUE(node.handle(1, signed_state(4, version, ranks({5}))));
    }
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 4, 10}));
}

TEST(LinkStates, ignores_what_is_not_from_a_connected_neighbour) {
    OneNode node{1};
    EXPECT_TRUE(node.handle(2, signed_state(4, 7, ranks({5}))));
    EXPECT_TRUE(node.handle(1, signed_state(0, 7, ranks({5})))) << "its own rank";
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_EQ(node.signer.verifications(), 0);
}

TEST(LinkStates, a_pair_is_broken_as_long_as_either_end_says_so) {
    OneNode node{1};
    const auto hear = [&](std::uint32_t origin, std::uint64_t version, std::vector<Rank> down) {
        EXPECT_TRUE(node.handle(1, signed_state(origin, version, std::move(down))));
        return node.states.changes();
    };
    EXPECT_EQ(hear(4, 1, ranks({5})), 1U);
    EXPECT_EQ(hear(5, 1, ranks({4})), 1U) << "nothing has changed";
    EXPECT_EQ(hear(4, 2, {}), 1U);
    EXPECT_EQ(node.states.broken(), pairs({{4, 5}}));
    EXPECT_EQ(hear(5, 2, {}), 2U);
    EXPECT_THAT(node.states.broken(), IsEmpty());
}

void expect_violation(const wire::LinkState& state, const std::string& words) {
    OneNode node{1, 2};
    const auto refused = node.handle(1, state);
    ASSERT_FALSE(refused) << words;
    EXPECT_EQ(refused.error().code(), Errc::protocol_violation);
    EXPECT_THAT(refused.error().cause(), HasSubstr("rank 1 sent a link state of rank 4 " + words));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_THAT(node.sent(), IsEmpty());
    EXPECT_TRUE(node.handle(2, signed_state(4, 7, ranks({5})))) << "only its sender is at fault";
    EXPECT_EQ(node.states.broken(), pairs({{4, 5}}));
}

TEST(LinkStates, a_forged_state_is_a_violation_of_its_sender) {
    const wire::LinkState genuine = signed_state(4, 7, ranks({5}));
    const auto with = [&](auto change) {
        wire::LinkState state = genuine;
        change(state);
        return state;
    };
    const std::string words = "with a wrong signature";
    expect_violation(with([](auto& x) { x.down = ranks({5, 6}); }), words);
    expect_violation(with([](auto& x) { x.down.clear(); }), words);
    expect_violation(with([](auto& x) { x.version = 8; }), words);
    expect_violation(with([](auto& x) { x.epoch = Epoch(2); }), words);
    expect_violation(with([](auto& x) { x.signature[63] ^= std::byte{1}; }), words);
    expect_violation(with([](auto& x) { x.key[31] ^= std::byte{1}; }), words);
}

TEST(LinkStates, a_state_signed_with_the_key_of_another_member_is_a_violation) {
    const FakeSigner forger{Rank(1)};
    wire::LinkState state = signed_state(4, 7, ranks({5}));
    state.key = forger.key();
    state.signature = forger.sign(wire::signed_bytes(kCluster, state));
    expect_violation(state, "with a wrong signature");
}

TEST(LinkStates, a_state_of_another_cluster_is_a_violation) {
    wire::LinkState state = signed_state(4, 7, ranks({5}));
    state.signature = FakeSigner(Rank(4)).sign(wire::signed_bytes(ClusterId{}, state));
    expect_violation(state, "with a wrong signature");
}

TEST(LinkStates, a_malformed_state_is_a_violation) {
    const wire::LinkState genuine = signed_state(4, 7, ranks({5}));
    const auto with = [&](auto change) {
        wire::LinkState state = genuine;
        change(state);
        return state;
    };
    expect_violation(with([](auto& x) { x.down = ranks({6, 5}); }), "whose broken links");
    expect_violation(with([](auto& x) { x.down = ranks({5, 5}); }), "whose broken links");
    expect_violation(with([](auto& x) { x.down = ranks({3, 4}); }), "that names its origin");
    expect_violation(with([](auto& x) { x.version = 0; }), "without a version");
    expect_violation(with([](auto& x) { x.epoch = Epoch(0); }), "without a version or an epoch");
    expect_violation(with([](auto& x) {
                         x.down.clear();
                         for (std::uint32_t i = 0; i < 65; ++i) x.down.emplace_back(100 + i);
                     }),
                     "that names too many");
}

// Views.

TEST(LinkStates, keeps_states_of_members_that_it_does_not_know_yet) {
    OneNode node{1, 2};
    EXPECT_TRUE(node.handle(1, signed_state(20, 1, ranks({21}), 2)));
    EXPECT_TRUE(node.handle(1, signed_state(20, 2, ranks({3}), 2)));
    EXPECT_TRUE(node.handle(1, signed_state(30, 1, ranks({3}), 1)));
    EXPECT_THAT(node.sent(), IsEmpty());
    EXPECT_EQ(node.signer.verifications(), 0);
    node.states.adopt(node.now, view_of(2, {0, 1, 2, 3, 20}), Rank(0));
    EXPECT_EQ(node.states.broken(), pairs({{3, 20}}));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 20, 2}));
}

TEST(LinkStates, a_forged_state_of_a_member_that_joins_later_is_noticed_then) {
    OneNode node{1};
    wire::LinkState forged = signed_state(20, 1, ranks({3}), 2);
    forged.down = ranks({4});
    EXPECT_TRUE(node.handle(1, forged));
    node.states.adopt(node.now, view_of(2, {0, 1, 3, 4, 20}), Rank(0));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_FALSE(node.handle(1, signed_state(3, 1, ranks({4}))));
    node.states.connected(node.now, Rank(1));
    EXPECT_TRUE(node.handle(1, signed_state(3, 1, ranks({4})))) << "a new link has a new start";
}

TEST(LinkStates, counts_broken_links_only_between_members) {
    OneNode node{1, 2};
    EXPECT_TRUE(node.handle(1, signed_state(4, 1, ranks({5, 20}), 2)));
    EXPECT_EQ(node.states.broken(), pairs({{4, 5}}));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 4, 1}));
    EXPECT_EQ(node.last->down, ranks({5, 20})) << "the signature covers both";
    const std::uint64_t changes = node.states.changes();
    node.states.adopt(node.now, view_of(2, {0, 1, 2, 4, 5, 20}), Rank(0));
    EXPECT_EQ(node.states.broken(), pairs({{4, 5}, {4, 20}}));
    EXPECT_EQ(node.states.changes(), changes + 1);
    node.states.adopt(node.now, view_of(3, {0, 1, 2, 5, 20}), Rank(0));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    node.states.adopt(node.now, view_of(4, {0, 1, 2, 5, 20, 30}), Rank(0));
    EXPECT_EQ(node.states.changes(), changes + 2) << "nothing has changed";
}

TEST(LinkStates, forgets_members_that_left) {
    OneNode node{1, 2};
    EXPECT_TRUE(node.handle(1, signed_state(4, 1, ranks({5}))));
    node.states.adopt(node.now, view_of(2, {0, 1, 2, 5}), Rank(0));
    EXPECT_THAT(node.sent(), IsEmpty()) << "the state was pending";
    node.states.connected(node.now, Rank(5));
    EXPECT_THAT(node.sent(), IsEmpty());
    EXPECT_TRUE(node.handle(1, signed_state(4, 2, ranks({5}))));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    node.states.adopt(node.now, view_of(3, {0, 1, 5}), Rank(0));
    node.down({5});
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 1}, Sent{5, 0, 1})) << "neighbour 2 left";
}

TEST(LinkStates, repeats_its_own_state_in_a_new_view_unless_it_is_empty) {
    OneNode node{1};
    node.states.adopt(node.now, view_of(2, {0, 1, 2, 3}), Rank(0));
    EXPECT_THAT(node.sent(), IsEmpty());
    node.down({3});
    EXPECT_EQ(node.sent().size(), 1U);
    node.now += milliseconds(50);
    node.states.adopt(node.now, view_of(3, {0, 1, 2, 3, 4}), Rank(0));
    node.states.adopt(node.now, view_of(3, {0, 1}), Rank(0));  // ignored
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 2}));
    EXPECT_EQ(*node.last, signed_state(0, 2, ranks({3}), 3));
    node.now += milliseconds(50);
    node.states.adopt(node.now, view_of(4, {0, 1, 2, 4}), Rank(0));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{1, 0, 3}));
    EXPECT_THAT(node.last->down, IsEmpty()) << "rank 3 left";
    node.now += milliseconds(50);
    node.states.adopt(node.now, view_of(5, {0, 1, 2}), Rank(0));
    EXPECT_THAT(node.sent(), IsEmpty());
}

TEST(LinkStates, says_what_it_learned_before_its_first_view) {
    FakeSigner signer{Rank(0)};
    LinkStates states(kCluster, signer);
    const TimePoint now{};
    states.set_down(now, ranks({2, 9}));
    states.connected(now, Rank(1));
    EXPECT_TRUE(states.handle(now, Rank(1), signed_state(2, 1, ranks({3}))));
    EXPECT_FALSE(states.poll_outgoing(now));
    states.adopt(now, view_of(1, {0, 1, 2, 3}), Rank(0));
    EXPECT_EQ(states.broken(), pairs({{0, 2}, {2, 3}}));
    const auto sent = states.poll_outgoing(now);
    ASSERT_TRUE(sent);
    EXPECT_EQ(*sent->state, signed_state(0, 1, ranks({2})));
}

TEST(LinkStates, of_an_earlier_process_cannot_be_replayed) {
    OneNode node{1, 2};
    EXPECT_TRUE(node.handle(1, signed_state(4, 9, ranks({5}))));
    EXPECT_EQ(node.sent().size(), 1U);
    View view = view_of(2, {0, 1, 2, 4, 5});
    view.members[3] = member(Rank(4), 2);
    node.states.adopt(node.now, view, Rank(0));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_TRUE(node.handle(1, signed_state(4, 10, ranks({5}), 1, 1)))
        << "views differ for a while";
    EXPECT_TRUE(node.handle(1, signed_state(4, 10, ranks({5}), 9, 1)));
    EXPECT_THAT(node.states.broken(), IsEmpty());
    EXPECT_TRUE(node.handle(1, signed_state(4, 1, ranks({2}), 2, 2))) << "versions start again";
    EXPECT_EQ(node.states.broken(), pairs({{2, 4}}));
    EXPECT_THAT(node.sent(), ElementsAre(Sent{2, 4, 1}));
}

}  // namespace
}  // namespace nexar::routing::link_state_tests
