#include "routing/relay.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "support/seed.hpp"
#include "unit/routing/relay_net.hpp"

namespace nexar::routing::relaying {
namespace {

using std::chrono::milliseconds;

struct Middle {
    Node node{5, 10};
    Relay& relay = node.relay;
    TimePoint now = kStart;

    Middle() {
        for (const std::size_t neighbour : {2U, 3U, 4U}) node.links[rank(neighbour)] = kWide;
        for (std::size_t i = 0; i < 10; ++i) node.table[rank(i)] = {Rank(4), Rank(3)};
    }
    Outcome arrived(std::size_t from, const wire::Envelope& envelope, std::size_t size = 100) {
        return relay.arrived(now, rank(from), datagram(envelope, packet(7, size)));
    }
};

wire::Envelope envelope(std::uint32_t source, std::uint32_t target, std::uint8_t hops) {
    return {.source = Rank(source), .target = Rank(target), .hops = hops, .number = 9};
}

TEST(Relay, refuses_a_forged_source_on_the_first_link) {
    Middle middle;
    EXPECT_EQ(middle.arrived(2, envelope(3, 8, kDefaultHops)), Outcome::forged_source);
    EXPECT_EQ(middle.arrived(2, envelope(3, 5, kDefaultHops)), Outcome::forged_source);
    EXPECT_EQ(middle.arrived(2, envelope(5, 8, kDefaultHops)), Outcome::forged_source);
    EXPECT_TRUE(is_violation(Outcome::forged_source));
    EXPECT_TRUE(middle.relay.neighbours_with_work().empty());
    EXPECT_FALSE(middle.relay.poll_arrived());
    EXPECT_EQ(middle.arrived(2, envelope(2, 8, kDefaultHops)), Outcome::forwarded);
    // Any member may relay, so nobody can verify the source of an envelope that was relayed.
    EXPECT_EQ(middle.arrived(2, envelope(3, 8, kDefaultHops - 1)), Outcome::forwarded);
}

TEST(Relay, refuses_envelopes_that_no_honest_neighbour_sends) {
    Middle middle;
    EXPECT_EQ(middle.arrived(2, envelope(2, 8, kDefaultHops + 1)), Outcome::too_many_hops);
    wire::Envelope part = envelope(3, 8, 7);
    part.part = wire::kFirstPart;
    EXPECT_EQ(middle.arrived(2, part, kMaxSplitBytes + 1), Outcome::malformed);
    EXPECT_EQ(middle.relay.arrived(middle.now, Rank(2), {}), Outcome::malformed);
    EXPECT_EQ(middle.relay.arrived(middle.now, Rank(2), packet(3, 400)), Outcome::malformed);
    Packet cut = datagram(envelope(3, 8, 7), packet(1, 90));
    cut.pop_back();
    EXPECT_EQ(middle.relay.arrived(middle.now, Rank(2), cut), Outcome::malformed);
    for (const Outcome one : {Outcome::too_many_hops, Outcome::malformed}) {
        EXPECT_TRUE(is_violation(one) && !is_drop(one));
    }
}

TEST(Relay, drops_envelopes_of_other_views_without_blame) {
    Middle middle;
    EXPECT_EQ(middle.arrived(2, envelope(11, 8, 7)), Outcome::unknown_member);
    EXPECT_EQ(middle.arrived(2, envelope(3, 11, 7)), Outcome::unknown_member);
    EXPECT_EQ(middle.arrived(2, envelope(5, 8, 7)), Outcome::returned);
    EXPECT_EQ(middle.arrived(2, envelope(3, 8, 1)), Outcome::hops_spent);
    EXPECT_EQ(middle.arrived(2, envelope(3, 5, 1)), Outcome::delivered);
    EXPECT_EQ(middle.relay.send(middle.now, Rank(11), 0, packet(1, 10)), Outcome::unknown_member);
    for (const Outcome one : {Outcome::unknown_member, Outcome::returned, Outcome::hops_spent}) {
        EXPECT_TRUE(is_drop(one) && !is_violation(one));
    }
}

TEST(Relay, limits_the_bytes_per_second_of_each_pair) {
    Middle plain;
    Node node(5, 10, {.pair_bytes_per_second = 1'000'000, .burst = milliseconds(10)});
    node.links = plain.node.links;
    node.table = plain.node.table;
    std::size_t passed = 0;
    std::size_t other = 0;
    const Packet flood = datagram(envelope(3, 8, 7), packet(7, 976));
    for (int step = 0; step < 10'000; ++step) {  // 10 MB per second, during one second
        const TimePoint now = kStart + Duration(100'000) * step;
        passed += node.relay.arrived(now, Rank(2), flood) == Outcome::forwarded ? 1000U : 0U;
        if (step % 100 == 0) {
            const Packet sparse = datagram(envelope(4, 8, 7), packet(7, 976));
            other += node.relay.arrived(now, Rank(2), sparse) == Outcome::forwarded ? 1000U : 0U;
        }
        while (node.relay.poll(now, Rank(4))) {
        }
    }
    EXPECT_NEAR(static_cast<double>(passed), 1'010'000, 3000);
    EXPECT_EQ(other, 100'000U);
    EXPECT_EQ(node.relay.count(Outcome::over_budget), 10'100 - (passed + other) / 1000);
    EXPECT_LE(node.relay.paced_pairs(), 2U);
}

TEST(Relay, keeps_only_the_budgets_of_pairs_that_have_just_sent) {
    PairPaces paces(100, 42);
    TimePoint now = kStart;
    const Duration burst = milliseconds(1);
    for (std::uint32_t i = 0; i < 5; ++i) {
        EXPECT_TRUE(paces.admit(now, {Rank(i), Rank(0)}, milliseconds(500), burst));
    }
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        now += Duration(100);
        ASSERT_TRUE(paces.admit(now, {Rank(i), Rank(1)}, Duration(1000), burst));
        ASSERT_LE(paces.pairs(), 35U);  // 15 of them are not idle
    }
    EXPECT_FALSE(paces.admit(now, {Rank(3), Rank(0)}, Duration(1), burst));
    std::size_t admitted = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        admitted += paces.admit(now, {Rank(i), Rank(2)}, Duration(1000), burst) ? 1U : 0U;
        ASSERT_LE(paces.pairs(), 100U);
    }
    EXPECT_GE(admitted, 65U);
    EXPECT_LE(admitted, 100U);
}

TEST(Relay, limits_the_packets_per_second_of_each_neighbour) {
    Node node(5, 10, {.neighbour_packets_per_second = 1000, .burst = milliseconds(10)});
    int delivered = 0;
    for (int step = 0; step < 10'000; ++step) {
        const TimePoint now = kStart + Duration(100'000) * step;
        if (node.relay.arrived(now, Rank(2), datagram(envelope(3, 5, 7), packet(1, 1))) ==
            Outcome::delivered) {
            ++delivered;
        }
        node.relay.poll_arrived();
    }
    EXPECT_NEAR(delivered, 1011, 2);
    EXPECT_EQ(node.relay.arrived(kStart + std::chrono::seconds(1), Rank(3),
                                 datagram(envelope(3, 5, 7), packet(1, 1))),
              Outcome::delivered);
}

TEST(Relay, holds_a_bounded_number_of_packets_that_nobody_polls) {
    Node node(5, 10, {.arrived_bytes = 100'000});
    std::uint64_t delivered = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const Packet bytes = datagram(envelope(3, 5, 7), packet(i, 1000));
        delivered += node.relay.arrived(kStart, Rank(2), bytes) == Outcome::delivered ? 1U : 0U;
    }
    EXPECT_LE(delivered, 100U);
    EXPECT_GE(delivered, 80U);
    EXPECT_EQ(node.relay.count(Outcome::queue_full), 1000 - delivered);
    for (; delivered > 0; --delivered) EXPECT_TRUE(node.relay.poll_arrived());
    EXPECT_FALSE(node.relay.poll_arrived());
    const Packet again = datagram(envelope(3, 5, 7), packet(1, 60'000));
    EXPECT_EQ(node.relay.arrived(kStart, Rank(2), again), Outcome::delivered);
}

TEST(Relay, drops_what_waits_for_a_neighbour_that_is_disconnected) {
    Middle middle;
    for (int i = 0; i < 5; ++i) middle.arrived(2, envelope(3, 8, 7));
    EXPECT_EQ(middle.relay.neighbours_with_work(), std::vector<Rank>{Rank(4)});
    EXPECT_EQ(middle.relay.next_deadline(), middle.now + milliseconds(50));
    middle.relay.poll(middle.now, Rank(4));
    middle.relay.disconnected(Rank(4));
    EXPECT_TRUE(middle.relay.neighbours_with_work().empty());
    EXPECT_EQ(middle.relay.poll(middle.now, Rank(4)), std::nullopt);
    EXPECT_EQ(middle.relay.next_deadline(), std::nullopt);
    EXPECT_EQ(middle.relay.disconnected_datagrams(), 4U);
    EXPECT_EQ(middle.relay.queue_counts().queued, 5U);
    EXPECT_EQ(middle.relay.queue_counts().sent, 1U);
}

}  // namespace
}  // namespace nexar::routing::relaying
