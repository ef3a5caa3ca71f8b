#include <gtest/gtest.h>

#include <iterator>
#include <map>

#include "base/random.hpp"
#include "link_state_network.hpp"
#include "link_state_parts.hpp"
#include "support/seed.hpp"

/// Link states in whole networks, and under floods.
namespace nexar::routing::link_state_tests {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint32_t below(Random& random, std::uint32_t bound) {
    return static_cast<std::uint32_t>(random.below(bound));
}

std::set<std::uint32_t> up_to(std::uint32_t count) {
    std::set<std::uint32_t> all;
    for (std::uint32_t i = 0; i < count; ++i) all.insert(all.end(), i);
    return all;
}

void adopt_everywhere(Network& net) {
    for (std::uint32_t i = 0; i < net.size(); ++i) net.adopt(i, 1, up_to(net.size()));
}

/// Connects all nodes by a random tree and `extra` other links. Returns the number of links.
std::uint64_t connect_all(Network& net, std::uint32_t extra, Random& random) {
    std::uint64_t links = 0;
    const auto connect = [&](std::uint32_t a, std::uint32_t b) {
        if (a != b && !net.is_up(a, b)) ++links;
        net.connect(a, b);
    };
    for (std::uint32_t i = 1; i < net.size(); ++i) connect(i, below(random, i));
    for (std::uint32_t i = 0; i < extra; ++i) {
        connect(below(random, net.size()), below(random, net.size()));
    }
    return links;
}

std::vector<Rank> random_ranks(Network& net, std::uint32_t self, Random& random) {
    std::vector<Rank> ranks;
    for (std::uint32_t left = below(random, 4); left > 0; --left) {
        const std::uint32_t rank = below(random, net.size());
        if (rank != self) ranks.emplace_back(rank);
    }
    return ranks;
}

/// Checks that all these members know exactly these broken links.
void expect_equal(Network& net, const std::set<std::uint32_t>& members,
                  const std::map<std::uint32_t, std::vector<Rank>>& down) {
    std::set<RankPair> expected;
    for (const auto& [rank, others] : down) {
        for (const Rank other : others) {
            expected.emplace(std::min(Rank(rank), other), std::max(Rank(rank), other));
        }
    }
    const std::vector<RankPair> all(expected.begin(), expected.end());
    for (const std::uint32_t i : members) {
        ASSERT_EQ(net.at(i).broken(), all) << "node " << i << " of " << net.size();
    }
}

TEST(LinkStateFlood, reaches_everyone_with_at_most_two_messages_per_link) {
    Random random(test_seed(1));
    for (int round = 0; round < 20; ++round) {
        Network net(5 + below(random, 60), random);
        adopt_everywhere(net);
        const std::uint64_t links = connect_all(net, below(random, 3 * net.size()), random);
        std::map<std::uint32_t, std::vector<Rank>> down;
        for (int change = 0; change < 4; ++change) {
            const std::uint32_t origin = below(random, net.size());
            const Rank other((origin + 1 + static_cast<std::uint32_t>(change)) % net.size());
            down[origin] = {other};
            const std::uint64_t before = net.messages();
            net.down(origin, down[origin]);
            net.settle();
            EXPECT_LE(net.messages() - before, 2 * links);
            expect_equal(net, up_to(net.size()), down);
            if (HasFatalFailure()) return;
        }
    }
}

TEST(LinkStateFlood, converges_while_links_come_and_go) {
    Random random(test_seed(2));
    for (int round = 0; round < 12; ++round) {
        Network net(5 + below(random, 60), random);
        adopt_everywhere(net);
        connect_all(net, net.size(), random);
        std::map<std::uint32_t, std::vector<Rank>> down;
        for (int step = 0; step < 60; ++step) {
            const std::uint32_t a = below(random, net.size());
            const std::uint32_t b = below(random, net.size());
            switch (random.below(4)) {
                case 0:
                    net.connect(a, b);
                    break;
                case 1:
                    for (std::uint32_t i = 0; i < net.size(); i += 2) net.cut(a, i);
                    break;
                default:
                    down[a] = random_ranks(net, a, random);
                    net.down(a, down[a]);
            }
            if (random.below(2) == 0) net.run_for(microseconds(random.below(30'000)));
            if (HasFatalFailure()) return;
        }
        connect_all(net, 0, random);
        net.settle();
        expect_equal(net, up_to(net.size()), down);
        if (HasFatalFailure()) return;
    }
}

/// Members that join and leave, each with links to some others.
struct Changing {
    Network net;
    Random* random;
    std::set<std::uint32_t> members{};
    std::uint32_t next = 0;  // to join
    std::map<std::uint32_t, std::vector<Rank>> down{};

    std::uint32_t any() {
        auto found = members.begin();
        std::advance(found, below(*random, static_cast<std::uint32_t>(members.size())));
        return *found;
    }

    /// Returns who must adopt the view, in random order.
    std::vector<std::uint32_t> change_members() {
        if (members.empty()) {
            while (next < net.size() / 2) members.insert(next++);
        } else if (next < net.size() && (members.size() < 4 || random->below(3) != 0)) {
            members.insert(next++);
        } else if (members.size() > 2) {
            const std::uint32_t gone = any();
            for (std::uint32_t i = 0; i < net.size(); ++i) net.cut(gone, i);
            members.erase(gone);
            down.erase(gone);
        }
        std::vector<std::uint32_t> order(members.begin(), members.end());
        for (std::size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1], order[random->below(i)]);
        }
        return order;
    }

    void say(std::uint32_t rank) {
        down[rank] = random_ranks(net, rank, *random);
        net.down(rank, down[rank]);
    }

    /// What everyone should know in the end.
    std::map<std::uint32_t, std::vector<Rank>> expected() {
        auto known = down;
        for (auto& [rank, others] : known) {
            std::erase_if(others, [&](Rank other) { return !members.contains(other.value()); });
        }
        return known;
    }
};

void adopt_in_turn(Changing& all, std::uint64_t epoch) {
    const std::uint32_t before = all.next;
    for (const std::uint32_t rank : all.change_members()) {
        all.net.adopt(rank, epoch, all.members);
        const bool joined = rank >= before || all.down.find(rank) == all.down.end();
        for (int i = 0; joined && i < 3; ++i) all.net.connect(rank, all.any());
        all.say(rank);
        if (all.random->below(4) == 0) {
            all.net.run_for(microseconds(all.random->below(5'000)));
        }
    }
}

TEST(LinkStateFlood, converges_although_members_adopt_views_at_different_times) {
    Random random(test_seed(3));
    for (int round = 0; round < 5; ++round) {
        Changing all{Network(8 + below(random, 40), random), &random};
        for (std::uint64_t epoch = 1; epoch < 14; ++epoch) {
            adopt_in_turn(all, epoch);
            if (HasFatalFailure()) return;
        }
        for (const std::uint32_t rank : all.members) all.net.connect(rank, *all.members.begin());
        for (auto& [rank, others] : all.down) all.net.down(rank, others);
        all.net.settle();
        expect_equal(all.net, all.members, all.expected());
        if (HasFatalFailure()) return;
    }
}

/// A node with one neighbour, which floods it.
struct Flooded {
    FakeSigner signer{Rank(0)};
    LinkStates states{kCluster, signer};
    TimePoint now{seconds(1)};

    Flooded() {
        states.adopt(now, view_of(1, up_to(2000)), Rank(0));
        states.connected(now, Rank(1));
        states.connected(now, Rank(2));
    }

    int forwarded() {
        int count = 0;
        while (states.poll_outgoing(now)) ++count;
        return count;
    }
};

TEST(LinkStateFlood, of_one_origin_costs_50_verifications_per_second) {
    Flooded node;
    std::uint64_t version = 0;
    int forwarded = 0;
    for (int ms = 0; ms < 2000; ++ms) {
        node.now += milliseconds(1);
        ++version;
        const auto other = static_cast<std::uint32_t>(6 + version % 2);
        const auto state = signed_state(5, version, ranks({other}));
        ASSERT_TRUE(node.states.handle(node.now, Rank(1), state));
        forwarded += node.forwarded();
    }
    EXPECT_LE(node.signer.verifications(), kOriginBurst + 2 * 50 + 1);
    EXPECT_GE(node.signer.verifications(), 100);
    EXPECT_LE(forwarded, node.signer.verifications());
    ASSERT_TRUE(node.states.next_deadline()) << "the newest state waits";
    while (const auto deadline = node.states.next_deadline()) {
        node.now = *deadline;
        node.forwarded();
    }
    EXPECT_LE(node.now, TimePoint(seconds(3)) + 2 * kOriginInterval);
    EXPECT_EQ(node.states.broken(), pairs({{5, 6}}));
    EXPECT_TRUE(node.states.handle(node.now, Rank(1), signed_state(6, 1, ranks({7}))))
        << "other origins are not affected";
    EXPECT_EQ(node.states.broken().size(), 2U);
}

TEST(LinkStateFlood, of_one_sender_costs_a_bounded_number_of_verifications) {
    Flooded node;
    for (std::uint32_t origin = 3; origin < 1500; ++origin) {
        ASSERT_TRUE(node.states.handle(node.now, Rank(1), signed_state(origin, 1, ranks({2}))));
    }
    EXPECT_EQ(node.signer.verifications(), kSenderBurst);
    EXPECT_TRUE(node.states.handle(node.now, Rank(2), signed_state(1600, 1, ranks({2}))))
        << "other senders are not affected";
    EXPECT_EQ(node.signer.verifications(), kSenderBurst + 1);
    for (int turn = 0; turn < 100; ++turn) {
        node.now += kOriginInterval;
        node.forwarded();
    }
    EXPECT_EQ(node.signer.verifications(), kSenderBurst + 1 + static_cast<int>(kMaxWaiting));
}

TEST(LinkStateFlood, of_forged_states_ends_with_the_first_one) {
    Flooded node;
    for (std::uint64_t version = 1; version < 1000; ++version) {
        wire::LinkState forged = signed_state(5, version, ranks({6}));
        forged.signature[0] ^= std::byte{1};
        EXPECT_FALSE(node.states.handle(node.now, Rank(1), forged));
    }
    EXPECT_LE(node.signer.verifications(), kOriginBurst + 1);
    EXPECT_EQ(node.forwarded(), 0);
}

TEST(LinkStateFlood, goes_to_a_neighbour_at_a_bounded_rate) {
    Flooded node;
    for (std::uint32_t origin = 3; origin < 203; ++origin) {
        ASSERT_TRUE(node.states.handle(node.now, Rank(1), signed_state(origin, 1, ranks({2}))));
    }
    EXPECT_EQ(node.forwarded(), kSendBurst);
    std::set<TimePoint> deadlines;
    int more = 0;
    while (const auto deadline = node.states.next_deadline()) {
        ASSERT_TRUE(deadlines.insert(*deadline).second) << "every deadline makes progress";
        node.now = *deadline;
        more += node.forwarded();
    }
    EXPECT_EQ(more, 200 - kSendBurst);
    EXPECT_EQ(node.now, TimePoint(seconds(1)) + (200 - kSendBurst) * kSendInterval);
}

}  // namespace
}  // namespace nexar::routing::link_state_tests
