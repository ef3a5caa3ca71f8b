#include <gtest/gtest.h>

#include <algorithm>

#include "sim/membership_world.hpp"

namespace nexar::testing {
namespace {

using membership::Hint;

/// True if all running nodes but the evicted ones know the same view of `epoch` or later, with
/// `members` members.
bool agree(MembershipWorld& world, std::uint64_t epoch, std::size_t members) {
    const View* first = nullptr;
    for (std::size_t i = 0; i < world.size(); ++i) {
        const auto& machine = world.at(i);
        if (!machine.running || machine.evicted || machine.seed) continue;
        const View& view = machine.membership->view();
        if (view.epoch.value() < epoch || view.members.size() != members) return false;
        if (first != nullptr && *first != view) return false;
        first = &view;
    }
    return first != nullptr;
}

Member joiner(MembershipWorld& world, std::size_t index) {
    return {.node = world.at(index).self.node, .incarnation = world.at(index).self.incarnation};
}

TEST(Membership, stays_as_it_is_without_failures) {
    MembershipWorld world(1, {});
    world.form(5, 1);
    world.run_for(60s);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(world.membership(i).view().epoch, Epoch(1));
        EXPECT_FALSE(world.at(i).minority);
    }
}

class Sizes : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Membership, Sizes, ::testing::Values(2, 3, 4, 5, 8, 16));

/// Forms a cluster whose seed then admits another machine, `fresh`, which has not started.
void form_and_admit(MembershipWorld& world, std::size_t members, std::size_t& fresh) {
    world.form(members, 1);
    fresh = world.add_machine(false);
    world.run_for(1s);
    world.membership(members).propose_members(world.now(), {joiner(world, fresh)});
    world.drain(members);
    ASSERT_TRUE(world.run_until_done(2s, [&] { return agree(world, 2, members + 1); }));
}

TEST_P(Sizes, killed_member_is_evicted_at_once_if_hosts_notice) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    world.form(members, 1);
    world.run_for(2s);
    world.kill(members - 1);
    const TimePoint killed = world.now();
    for (std::size_t i = 0; i + 1 < members; ++i) world.hint(i, members - 1, Hint::gone);
    // Two members need the witness, which has to look for itself.
    const Duration limit = members == 2 ? 250ms : 20ms;
    ASSERT_TRUE(world.run_until_done(5s, [&] { return agree(world, 2, members - 1); }));
    EXPECT_LE(world.now() - killed, limit);
}

TEST_P(Sizes, refused_packets_evict_a_killed_member) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    world.form(members, 1);
    world.run_for(2s);
    world.refuse_packets = true;
    world.kill(0);
    const TimePoint killed = world.now();
    ASSERT_TRUE(world.run_until_done(5s, [&] { return agree(world, 2, members - 1); }));
    EXPECT_LE(world.now() - killed, 160ms);
}

TEST_P(Sizes, stopped_member_is_evicted_and_learns_it_when_it_continues) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    world.form(members, 1);
    world.run_for(2s);
    world.pause(1);
    const TimePoint stopped = world.now();
    const auto others_agree = [&] {
        for (std::size_t i = 0; i < members; ++i) {
            if (i != 1 && world.membership(i).view().members.size() != members - 1) return false;
        }
        return true;
    };
    ASSERT_TRUE(world.run_until_done(5s, others_agree));
    EXPECT_LE(world.now() - stopped, 700ms);
    world.run_for(3s);
    world.resume(1);
    EXPECT_TRUE(world.run_until_done(2s, [&] { return world.at(1).evicted; }));
    EXPECT_TRUE(agree(world, 2, members - 1));
}

TEST_P(Sizes, member_that_stops_after_its_links_came_up_is_evicted_as_fast_as_others) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    std::size_t fresh = 0;
    ASSERT_NO_FATAL_FAILURE(form_and_admit(world, members, fresh));
    // It connects, and stops before its first heartbeat.
    for (std::size_t i = 0; i < members; ++i) world.hint(i, fresh, Hint::connected);
    const TimePoint stopped = world.now();
    ASSERT_TRUE(world.run_until_done(5s, [&] { return agree(world, 3, members); }));
    EXPECT_LE(world.now() - stopped, 700ms);
}

TEST_P(Sizes, member_leaves_in_good_order) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    world.form(members, 1);
    std::vector<membership::Decided> decided;
    world.watch([&](std::size_t, const membership::Event& event) {
        if (const auto* const one = std::get_if<membership::Decided>(&event))
            decided.push_back(*one);
    });
    world.run_for(1s);
    world.membership(0).leave(world.now());
    world.drain(0);
    ASSERT_TRUE(world.run_until_done(2s, [&] { return agree(world, 2, members - 1); }));
    EXPECT_TRUE(world.at(0).evicted);
    ASSERT_FALSE(decided.empty());
    for (const membership::Decided& one : decided) {
        EXPECT_EQ(one.left, std::vector{Rank(0)});
        EXPECT_TRUE(one.lost.empty());
    }
}

TEST_P(Sizes, node_joins_with_a_new_rank) {
    const std::size_t members = GetParam();
    MembershipWorld world(1, {});
    std::size_t fresh = 0;
    ASSERT_NO_FATAL_FAILURE(form_and_admit(world, members, fresh));
    const View& view = world.membership(0).view();
    EXPECT_EQ(view.members.back().rank, Rank(static_cast<std::uint32_t>(members)));
    world.start(fresh, {.view = world.membership(members).view()});
    world.run_for(5s);
    EXPECT_TRUE(agree(world, 2, members + 1));
}

TEST(Membership, last_member_leaves) {
    MembershipWorld world(1, {});
    world.form(1, 1);
    world.run_for(1s);
    world.membership(0).leave(world.now());
    world.drain(0);
    EXPECT_TRUE(world.run_until_done(1s, [&] { return world.at(0).evicted; }));
    EXPECT_TRUE(
        world.run_until_done(1s, [&] { return world.membership(1).view().members.empty(); }));
}

}  // namespace
}  // namespace nexar::testing
