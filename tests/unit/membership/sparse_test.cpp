#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/membership_relays.hpp"

/// Sparse topologies: who watches whom, and who is evicted.
namespace nexar::testing {
namespace {

using membership::Hint;
using Machines = std::vector<std::size_t>;

class Sparse : public ::testing::TestWithParam<std::string_view> {
protected:
    static constexpr std::size_t kMembers = 16;

    static MembershipWorld::Settings settings() {
        return sparse_settings(routing::Topology::parse(GetParam()).value());
    }
    static std::unique_ptr<MembershipWorld> formed(std::size_t members = kMembers) {
        auto world = std::make_unique<MembershipWorld>(1, settings());
        form_sparse(*world, members);
        return world;
    }
    static Machines neighbours(MembershipWorld& world, std::size_t of) {
        Machines machines;
        for (std::size_t i = 0; i < world.size(); ++i) {
            if (!world.at(i).seed && i != of && world.near(i, of)) machines.push_back(i);
        }
        return machines;
    }
    /// The machine is in a view of exactly these members, and can go on.
    static bool continues(MembershipWorld& world, std::size_t machine, const Machines& members) {
        const View& view = world.membership(machine).view();
        if (world.at(machine).minority || view.members.size() != members.size()) return false;
        return std::ranges::all_of(members, [&](std::size_t one) {
            return view.find(world.at(one).self.node) != nullptr;
        });
    }
    static Machines all_but(const Machines& gone, std::size_t members = kMembers) {
        Machines rest;
        for (std::size_t i = 0; i < members; ++i) {
            if (std::ranges::find(gone, i) == gone.end()) rest.push_back(i);
        }
        return rest;
    }
    static bool rest_continues(MembershipWorld& world, const Machines& gone) {
        const Machines rest = all_but(gone);
        return std::ranges::all_of(rest, [&](std::size_t i) { return continues(world, i, rest); });
    }
    static void separate(MembershipWorld& world, const Machines& side) {
        const std::set<std::size_t> these(side.begin(), side.end());
        for (std::size_t a = 0; a < world.size(); ++a) {
            for (std::size_t b = 0; b < a; ++b)
                world.cut_both(a, b, these.contains(a) != these.contains(b));
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Membership, Sparse, ::testing::ValuesIn(kSparseTopologies),
                         [](const ::testing::TestParamInfo<std::string_view>& one) {
                             return test_name(one.param);
                         });

TEST_P(Sparse, members_that_are_not_neighbours_exchange_nothing_without_failures) {
    const auto world = formed();
    std::size_t messages = 0;
    world->watch_messages([&](std::size_t from, const membership::Outgoing& outgoing) {
        ++messages;
        const std::size_t to = world->index_of(outgoing.to);
        EXPECT_TRUE(world->near(from, to)) << from << " to " << to;
        EXPECT_TRUE(std::holds_alternative<wire::Heartbeat>(outgoing.message));
    });
    world->run_for(10s);
    EXPECT_GT(messages, kMembers * 300);
}

TEST_P(Sparse, neighbours_are_asked_for_only_when_a_view_is_adopted) {
    std::size_t calls = 0;
    MembershipWorld::Settings counting = settings();
    counting.tunnels.neighbours = [&calls, inner = std::move(counting.tunnels.neighbours)](
                                      const View& view, const NodeId& of) {
        ++calls;
        return inner(view, of);
    };
    MembershipWorld world(1, counting);
    form_sparse(world, kMembers);
    // Of every member at each of them, and one call by the simulated network.
    EXPECT_EQ(calls, kMembers * (kMembers + 1));
    world.run_for(10s);
    EXPECT_EQ(calls, kMembers * (kMembers + 1));
    world.kill(3);
    world.run_for(10s);
    EXPECT_EQ(calls, kMembers * (kMembers + 1) + (kMembers - 1) * kMembers);
}

TEST_P(Sparse, silent_member_is_evicted_within_the_budget_and_nobody_else) {
    for (std::size_t victim = 0; victim < kMembers; ++victim) {
        const auto world = formed();
        world->kill(victim);
        const TimePoint killed = world->now();
        ASSERT_TRUE(world->run_until_done(5s, [&] { return rest_continues(*world, {victim}); }));
        EXPECT_LE(world->now() - killed, 700ms) << victim;
        world->run_for(3s);
        EXPECT_TRUE(rest_continues(*world, {victim})) << victim;
        EXPECT_EQ(world->membership((victim + 1) % kMembers).view().epoch, Epoch(2));
    }
}

TEST_P(Sparse, noticed_death_of_a_relay_evicts_only_the_relay) {
    for (std::size_t victim = 0; victim < kMembers; ++victim) {
        const auto world = formed();
        const TimePoint killed = world->now();
        kill_noticed(*world, {victim});
        ASSERT_TRUE(world->run_until_done(5s, [&] { return rest_continues(*world, {victim}); }));
        // Messages through the relay arrive up to 300 ms late.
        EXPECT_LE(world->now() - killed, 500ms) << victim;
        world->run_for(3s);
        EXPECT_TRUE(rest_continues(*world, {victim})) << victim;
    }
}

TEST_P(Sparse, refused_packets_evict_only_the_killed_member) {
    for (const std::size_t victim : {std::size_t{0}, std::size_t{6}, std::size_t{15}}) {
        const auto world = formed();
        world->refuse_packets = true;
        world->kill(victim);
        const TimePoint killed = world->now();
        ASSERT_TRUE(world->run_until_done(5s, [&] { return rest_continues(*world, {victim}); }));
        EXPECT_LE(world->now() - killed, 600ms) << victim;
    }
}

TEST_P(Sparse, cut_between_two_neighbours_evicts_nobody) {
    for (std::size_t a = 0; a < kMembers; ++a) {
        for (const std::size_t b : neighbours(*formed(), a)) {
            if (b < a) continue;
            const auto world = formed();
            world->cut_both(a, b, true);
            // Both ends see that the link broke, and that it cannot be made again.
            for (int i = 0; i < 3; ++i) {
                world->hint(a, b, Hint::doubtful);
                world->hint(b, a, Hint::doubtful);
            }
            world->run_for(5s);
            EXPECT_TRUE(rest_continues(*world, {})) << a << " and " << b;
            EXPECT_EQ(world->membership(a).view().epoch, Epoch(1)) << a << " and " << b;
            EXPECT_TRUE(world->membership(a).hears(world->at(b).self.node));
        }
    }
}

TEST_P(Sparse, member_survives_the_death_of_all_its_neighbours) {
    for (const bool noticed : {false, true}) {
        for (std::size_t member = 0; member < kMembers; ++member) {
            const auto world = formed();
            const Machines relays = neighbours(*world, member);
            if (noticed) {
                kill_noticed(*world, relays);
            } else {
                for (const std::size_t one : relays) world->kill(one);
            }
            EXPECT_TRUE(world->run_until_done(5s, [&] { return rest_continues(*world, relays); }))
                << member;
            world->run_for(3s);
            EXPECT_TRUE(rest_continues(*world, relays)) << member;
        }
    }
}

/// The neighbour accuses the member, because nobody is left who could relay.
TEST_P(Sparse, member_survives_when_its_last_neighbour_has_lost_the_path_to_it) {
    for (std::size_t member = 0; member < kMembers; ++member) {
        const auto world = formed();
        Machines dead = neighbours(*world, member);
        world->cut_both(member, dead.back(), true);
        dead.pop_back();
        world->run_for(3s);
        for (const std::size_t one : dead) world->kill(one);
        EXPECT_TRUE(world->run_until_done(5s, [&] { return rest_continues(*world, dead); }))
            << member;
        world->run_for(3s);
        EXPECT_TRUE(rest_continues(*world, dead)) << member;
    }
}

TEST_P(Sparse, member_that_dies_with_all_its_neighbours_is_evicted) {
    for (std::size_t member = 0; member < kMembers; ++member) {
        const auto world = formed();
        Machines dead = neighbours(*world, member);
        dead.push_back(member);
        for (const std::size_t one : dead) world->kill(one);
        const TimePoint killed = world->now();
        ASSERT_TRUE(world->run_until_done(10s, [&] { return rest_continues(*world, dead); }));
        EXPECT_LE(world->now() - killed, 1500ms) << member;
    }
}

TEST_P(Sparse, minority_stops_and_learns_that_it_was_evicted) {
    const auto world = formed();
    const Machines small = {2, 5, 6, 11, 12};
    const Machines large = all_but(small);
    separate(*world, small);  // the seed is on the other side
    const TimePoint cut = world->now();
    const auto decided = [&] {
        return std::ranges::all_of(large,
                                   [&](std::size_t i) { return continues(*world, i, large); }) &&
               std::ranges::all_of(small, [&](std::size_t i) { return world->at(i).minority; });
    };
    ASSERT_TRUE(world->run_until_done(5s, decided));
    EXPECT_LE(world->now() - cut, 1500ms);
    world->run_for(3s);
    for (const std::size_t i : small) EXPECT_EQ(world->membership(i).view().epoch, Epoch(1)) << i;
    world->heal();
    EXPECT_TRUE(world->run_until_done(5s, [&] {
        return std::ranges::all_of(small, [&](std::size_t i) { return world->at(i).evicted; });
    }));
    EXPECT_TRUE(decided());
}

TEST_P(Sparse, goodbye_to_the_neighbours_is_enough) {
    const auto world = formed();
    const Machines friends = neighbours(*world, 4);
    std::vector<membership::Decided> decided;
    world->watch([&](std::size_t, const membership::Event& event) {
        if (const auto* const one = std::get_if<membership::Decided>(&event))
            decided.push_back(*one);
    });
    world->kill(4);
    for (const std::size_t one : friends) world->hint(one, 4, Hint::left);
    ASSERT_TRUE(world->run_until_done(2s, [&] { return rest_continues(*world, {4}); }));
    for (const membership::Decided& one : decided) EXPECT_EQ(one.left, std::vector{Rank(4)});
}

TEST_P(Sparse, failure_opens_no_tunnels_except_to_the_failed_member) {
    constexpr std::size_t kMany = 32;
    constexpr std::size_t kVictim = 9;
    const auto world = formed(kMany);
    std::set<std::pair<std::size_t, std::size_t>> before;  // connected in the first view
    for (std::size_t i = 0; i < kMany; ++i) {
        for (const std::size_t one : neighbours(*world, i)) before.emplace(i, one);
    }
    std::set<std::size_t> probed_by;
    world->watch_messages([&](std::size_t from, const membership::Outgoing& outgoing) {
        const std::size_t to = world->index_of(outgoing.to);
        if (!std::holds_alternative<wire::Heartbeat>(outgoing.message)) return;
        if (to == kVictim) probed_by.insert(from);
        const bool near = world->near(from, to) || before.contains({from, to});
        EXPECT_TRUE(to == kVictim || near) << from << " to " << to;
    });
    world->kill(kVictim);
    world->run_for(3s);
    EXPECT_EQ(world->membership(0).view().epoch, Epoch(2));
    EXPECT_EQ(probed_by.size(), kMany);  // the seed votes too
}

TEST(SparseRelays, relays_that_die_together_take_nobody_with_them) {
    EXPECT_EQ(evicted_behind_dead_relays(), Machines());
}

/// In a ring, most members of a side see nothing of a cut.
class SparseRing : public Sparse {};
INSTANTIATE_TEST_SUITE_P(Membership, SparseRing, ::testing::Values("k_regular:2"));

TEST_P(SparseRing, both_sides_of_a_partition_notice_it) {
    const auto world = formed(15);
    Machines small(7);
    std::iota(small.begin(), small.end(), 8U);
    const Machines large = all_but(small, 15);
    separate(*world, small);
    const TimePoint cut = world->now();
    ASSERT_TRUE(world->run_until_done(5s, [&] {
        return std::ranges::all_of(small, [&](std::size_t i) { return world->at(i).minority; });
    }));
    EXPECT_LE(world->now() - cut, 1000ms);
    ASSERT_TRUE(world->run_until_done(5s, [&] {
        return std::ranges::all_of(large,
                                   [&](std::size_t i) { return continues(*world, i, large); });
    }));
    EXPECT_LE(world->now() - cut, 1500ms);
}

TEST_P(SparseRing, members_between_two_dead_ones_survive) {
    const auto world = formed(15);
    world->kill(3);
    world->kill(6);
    const Machines rest = all_but({3, 6}, 15);
    const auto decided = [&] {
        return std::ranges::all_of(rest, [&](std::size_t i) { return continues(*world, i, rest); });
    };
    EXPECT_TRUE(world->run_until_done(5s, decided));
    world->run_for(3s);
    EXPECT_TRUE(decided());
}

}  // namespace
}  // namespace nexar::testing
