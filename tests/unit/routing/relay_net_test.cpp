#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.hpp"
#include "support/seed.hpp"
#include "unit/routing/relay_net.hpp"

namespace nexar::routing::relaying {
namespace {

using std::chrono::milliseconds;

Net line(std::size_t members, std::size_t max_datagram = kWide) {
    Net net(members);
    for (std::size_t i = 1; i < members; ++i) net.connect(i - 1, i, max_datagram);
    net.find_ways();
    return net;
}

TEST(Relay, packets_cross_several_relays_whole_and_in_order) {
    Net net = line(5);
    for (std::uint32_t i = 0; i < 20; ++i) {
        ASSERT_EQ(net.send(0, 4, packet(i, 1 + i * 200)), Outcome::sent);
        ASSERT_EQ(net.send(3, 1, packet(100 + i, 50)), Outcome::sent);
    }
    net.settle();
    for (std::uint32_t i = 0; i < 20; ++i) {
        const auto there = net.nodes[4]->relay.poll_arrived();
        ASSERT_TRUE(there);
        EXPECT_EQ(there->source, Rank(0));
        EXPECT_TRUE(std::ranges::equal(there->packet(), packet(i, 1 + i * 200)));
        const auto back = net.nodes[1]->relay.poll_arrived();
        ASSERT_TRUE(back);
        EXPECT_EQ(back->source, Rank(3));
        EXPECT_TRUE(std::ranges::equal(back->packet(), packet(100 + i, 50)));
    }
    EXPECT_FALSE(net.nodes[4]->relay.poll_arrived());
    EXPECT_EQ(net.count(Outcome::forwarded), 20U * 3 + 20);
    EXPECT_EQ(net.violations(), 0U);
}

TEST(Relay, forwards_and_delivers_the_memory_in_which_a_datagram_came) {
    Net net = line(3);
    net.send(0, 2, packet(1, 1200));
    net.collect();
    const std::byte* const memory = net.flying.front().bytes.data();
    net.settle();
    const auto there = net.nodes[2]->relay.poll_arrived();
    ASSERT_TRUE(there);
    EXPECT_EQ(there->memory.data(), memory);
    EXPECT_EQ(there->packet().data(), memory + wire::kEnvelopeBytes);
}

TEST(Relay, keeps_nothing_about_a_tunnel_that_is_idle) {
    Net net = line(4);
    for (std::uint32_t i = 0; i < 30; ++i) net.send(i % 3, 3, packet(i, 1000));
    net.settle();
    net.now += milliseconds(100);
    for (const auto& node : net.nodes) {
        for (const auto& [next, bytes] : node->links) {
            const RelayQueue* const queue = node->relay.queue(next);
            EXPECT_TRUE(queue == nullptr || (queue->pairs() == 0 && queue->bytes() == 0));
        }
        EXPECT_EQ(node->relay.next_deadline(), std::nullopt);
        EXPECT_TRUE(node->relay.neighbours_with_work().empty());
        EXPECT_LE(node->relay.paced_pairs(), 3U);
    }
}

TEST(Relay, a_packet_of_1200_bytes_crosses_narrow_links_in_two_parts) {
    Net net = line(4, kNarrow);
    net.connect(1, 2, 700);
    for (const std::size_t size : {1121U, 1199U, 1200U}) {
        EXPECT_EQ(net.send(0, 3, packet(5, size)), Outcome::sent);
        EXPECT_EQ(net.settle(), 6U);
        const auto there = net.nodes[3]->relay.poll_arrived();
        ASSERT_TRUE(there);
        EXPECT_TRUE(std::ranges::equal(there->packet(), packet(5, size)));
    }
    net.connect(1, 2, kNarrow);
    EXPECT_EQ(net.send(0, 3, packet(5, kNarrow - wire::kEnvelopeBytes)), Outcome::sent);
    EXPECT_EQ(net.settle(), 3U);
    EXPECT_EQ(net.send(0, 3, packet(5, 1201)), Outcome::too_large);
    EXPECT_EQ(net.settle(), 0U);
}

TEST(Relay, a_relay_splits_a_whole_packet_before_a_narrow_link_but_never_a_part) {
    Net net = line(4);
    net.connect(1, 2, kNarrow);
    net.send(0, 3, packet(5, 1200));
    EXPECT_EQ(net.settle(), 5U);
    EXPECT_TRUE(std::ranges::equal(net.nodes[3]->relay.poll_arrived()->packet(), packet(5, 1200)));
    net.send(0, 3, packet(6, 5000));
    EXPECT_EQ(net.settle(), 1U);
    EXPECT_EQ(net.nodes[1]->relay.count(Outcome::too_large), 1U);
    net.connect(2, 3, 500);
    net.send(0, 3, packet(7, 1200));
    EXPECT_EQ(net.settle(), 3U);
    EXPECT_EQ(net.nodes[2]->relay.count(Outcome::too_large), 2U);
    EXPECT_EQ(net.violations(), 0U);
}

TEST(Relay, an_envelope_in_a_loop_ends_after_the_hop_limit) {
    for (const std::uint8_t limit : {std::uint8_t{1}, kDefaultHops, wire::kMaxHops}) {
        // Node 0 sends to 4 through 1, which believes 2, which believes 3, which believes 1.
        Net net(5, {.max_hops = limit});
        for (const auto& [a, b] : {std::pair{0U, 1U}, {1U, 2U}, {2U, 3U}, {3U, 1U}}) {
            net.connect(a, b, kWide);
            net.nodes[a]->table[Rank(4)] = {Rank(b)};
        }
        for (std::uint32_t i = 0; i < 10; ++i) net.send(0, 4, packet(i, 300));
        EXPECT_EQ(net.settle(), 10U * limit);
        EXPECT_EQ(net.count(Outcome::hops_spent), 10U);
        EXPECT_EQ(net.violations(), 0U);
    }
}

TEST(Relay, every_envelope_ends_within_the_hop_limit_whatever_the_tables_say) {
    Random random(test_seed(31));
    for (int round = 0; round < 40; ++round) {
        const std::size_t members = 3 + random.below(8);
        Net net(members);
        for (std::size_t a = 0; a < members; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                if (b + 1 == a || random.chance(0.3)) net.connect(a, b, kWide);
            }
        }
        for (const auto& node : net.nodes) {
            node->stubborn = random.chance(0.5);
            for (std::size_t target = 0; target < members; ++target) {
                node->table[rank(target)] = {rank(random.below(members + 1))};
            }
        }
        std::uint64_t sent = 0;
        for (std::uint32_t i = 0; i < 50; ++i) {
            const std::size_t from = random.below(members);
            const std::size_t to = (from + 1 + random.below(members - 1)) % members;
            sent += net.send(from, to, packet(i, 100)) == Outcome::sent ? 1U : 0U;
        }
        EXPECT_LE(net.settle(), sent * kDefaultHops);
        const std::uint64_t never_sent = 50 - sent;
        EXPECT_EQ(sent, net.count(Outcome::delivered) + net.count(Outcome::hops_spent) +
                            net.count(Outcome::returned) + net.count(Outcome::no_route) -
                            never_sent);
        EXPECT_EQ(net.violations(), 0U);
    }
}

TEST(Relay, never_sends_an_envelope_back_to_where_it_came_from) {
    Net net = line(4);
    net.nodes[1]->stubborn = true;
    net.nodes[1]->table[Rank(3)] = {Rank(0)};
    net.send(0, 3, packet(1, 100));
    EXPECT_EQ(net.settle(), 1U);
    EXPECT_EQ(net.nodes[1]->relay.count(Outcome::no_route), 1U);
    net.nodes[1]->table[Rank(3)] = {Rank(3)};  // without a link
    net.send(0, 3, packet(1, 100));
    EXPECT_EQ(net.settle(), 1U);
    EXPECT_EQ(net.nodes[1]->relay.count(Outcome::no_route), 2U);
}

/// A random connected graph of members, links that lose, repeat and reorder datagrams, and random
/// packets of which it remembers the content.
class Weather {
public:
    explicit Weather(Random& random)
        : random_(random), net_(2 + random.below(9), options()), loss_(random.uniform() * 0.3) {
        const std::size_t members = net_.nodes.size();
        const std::uint64_t shape = random.below(3);
        for (std::size_t a = 1; a < members; ++a) {
            connect(a, shape == 2 ? random.below(a) : a - 1);
            if (shape == 2 && random.chance(0.3)) connect(a, random.below(a));
        }
        if (shape == 1) connect(0, members - 1);
        net_.find_ways();
    }

    void step() {
        switch (random_.below(4)) {
            case 0:
                send();
                break;
            case 1:
                depart();
                break;
            case 2:
                land();
                break;
            default:
                net_.now += Duration(random_.below(2'000'000));
                break;
        }
        receive();
        check();
    }

    /// From now on everything arrives; then one packet of every pair must get through.
    void calm_down() {
        net_.settle();
        receive();
        net_.now += milliseconds(100);
        for (const auto& node : net_.nodes) node->relay.expire(net_.now);
        const std::size_t members = net_.nodes.size();
        const std::uint64_t before = received_;
        for (std::size_t a = 0; a < members; ++a) {
            for (std::size_t b = 0; b < members; ++b) {
                if (a != b) send_packet(a, b, 1 + random_.below(kMaxSplitBytes));
            }
        }
        net_.settle();
        receive();
        check();
        EXPECT_EQ(received_ - before, members * (members - 1));
        EXPECT_EQ(net_.violations(), 0U);
        for (const auto& node : net_.nodes) EXPECT_EQ(node->relay.next_deadline(), std::nullopt);
    }

    std::uint64_t received() const { return received_; }

private:
    static RelayOptions options() {
        return {.queue = {.pair_bytes = 20'000, .total_bytes = 60'000, .pairs = 96},
                .parts = {.per_source = 8, .total = 24}};
    }

    void connect(std::size_t a, std::size_t b) {
        if (a == b) return;
        const std::size_t widths[] = {624, kNarrow, 1172, kWide};
        net_.connect(a, b, widths[random_.below(4)]);
    }

    void send() {
        const std::size_t members = net_.nodes.size();
        const std::size_t from = random_.below(members);
        const std::size_t to = (from + 1 + random_.below(members - 1)) % members;
        for (std::uint64_t i = random_.below(20); i > 0; --i) {
            send_packet(from, to, 1 + random_.below(random_.chance(0.1) ? 8000 : 1200));
        }
    }

    void send_packet(std::size_t from, std::size_t to, std::size_t size) {
        Packet bytes = packet(++number_, size);
        const Outcome outcome = net_.send(from, to, bytes, static_cast<std::uint16_t>(number_));
        EXPECT_TRUE(outcome == Outcome::sent || size > kMaxSplitBytes);
        sent_[{from, to}].insert(std::move(bytes));
    }

    /// Takes some datagrams of one link.
    void depart() {
        const std::size_t from = random_.below(net_.nodes.size());
        Relay& relay = net_.nodes[from]->relay;
        for (const Rank next : relay.neighbours_with_work()) {
            for (std::uint64_t i = random_.below(10); i > 0; --i) {
                auto bytes = relay.poll(net_.now, next);
                if (!bytes) break;
                ASSERT_LE(bytes->size(), net_.nodes[from]->links.at(next));
                if (random_.chance(loss_)) continue;
                net_.flying.push_back({from, next.value(), *bytes});
                if (random_.chance(0.1)) net_.flying.push_back({from, next.value(), *bytes});
            }
        }
    }

    void land() {
        for (std::uint64_t i = random_.below(20); i > 0 && !net_.flying.empty(); --i) {
            std::swap(net_.flying[random_.below(net_.flying.size())], net_.flying.back());
            Flight flight = std::move(net_.flying.back());
            net_.flying.pop_back();
            net_.land(std::move(flight));
        }
    }

    void receive() {
        for (std::size_t to = 0; to < net_.nodes.size(); ++to) {
            while (const auto one = net_.nodes[to]->relay.poll_arrived()) {
                ++received_;
                const Packet bytes(one->packet().begin(), one->packet().end());
                ASSERT_TRUE(sent_[std::pair(one->source.value(), to)].contains(bytes));
            }
        }
    }

    void check() const {
        const RelayOptions limits = options();
        for (const auto& node : net_.nodes) {
            for (const auto& [next, bytes] : node->links) {
                const RelayQueue* const queue = node->relay.queue(next);
                if (queue == nullptr) continue;
                ASSERT_LE(queue->bytes(), limits.queue.total_bytes);
                ASSERT_LE(queue->pairs(), limits.queue.pairs);
                ASSERT_LE(queue->pairs(), queue->datagrams());
            }
            const RelayQueueCounts& counts = node->relay.queue_counts();
            const std::uint64_t gone = counts.sent + counts.dropped_full + counts.dropped_old;
            ASSERT_LE(gone, counts.queued);
        }
    }

    Random& random_;
    Net net_;
    double loss_;
    std::uint32_t number_ = 0;
    std::uint64_t received_ = 0;
    std::map<std::pair<std::size_t, std::size_t>, std::set<Packet>> sent_{};
};

TEST(RelayNet, delivers_only_packets_that_were_sent_and_stays_within_its_bounds) {
    Random random(test_seed(32));
    std::uint64_t received = 0;
    for (int round = 0; round < 30; ++round) {
        Weather weather(random);
        for (int step = 0; step < 300; ++step) {
            weather.step();
            ASSERT_FALSE(::testing::Test::HasFatalFailure()) << round << " " << step;
        }
        weather.calm_down();
        received += weather.received();
    }
    EXPECT_GT(received, 1000U);
}

/// Envelopes of a hostile neighbour: any fields, any bytes.
Packet hostile(Random& random) {
    wire::Envelope envelope{.source = rank(random.below(9)),
                            .target = rank(random.below(9)),
                            .hops = static_cast<std::uint8_t>(1 + random.below(20)),
                            .part = static_cast<std::uint8_t>(random.below(3)),
                            .choice = static_cast<std::uint16_t>(random.next()),
                            .number = static_cast<std::uint32_t>(random.below(200))};
    if (envelope.source == envelope.target) envelope.source = Rank(9);
    const std::size_t size = 1 + random.below(random.chance(0.05) ? 9000 : 700);
    Packet bytes = datagram(envelope, packet(envelope.number, size));
    if (random.chance(0.1)) bytes[random.below(24)] = static_cast<std::byte>(random.next());
    if (random.chance(0.02)) bytes.resize(random.below(bytes.size()));
    return bytes;
}

TEST(RelayNet, a_hostile_neighbour_cannot_exceed_any_bound) {
    Random random(test_seed(33));
    const RelayOptions options{.pair_bytes_per_second = 2'000'000,
                               .paced_pairs = 20,
                               .neighbour_packets_per_second = 600'000,
                               .burst = milliseconds(1),
                               .arrived_bytes = 10'000,
                               .queue = {.pair_bytes = 20'000, .total_bytes = 60'000, .pairs = 16},
                               .parts = {.per_source = 8, .total = 24}};
    Node node(5, 8, options);
    for (const std::size_t neighbour : {2U, 3U}) node.links[rank(neighbour)] = kNarrow;
    for (std::size_t i = 0; i < 10; ++i) node.table[rank(i)] = {Rank(3), Rank(2)};
    TimePoint now = kStart;
    for (int step = 0; step < 30'000; ++step) {
        now += Duration(random.below(3000));
        node.relay.arrived(now, Rank(2), hostile(random));
        if (random.chance(0.1)) node.relay.poll_arrived();
        if (random.chance(0.1)) node.relay.poll(now, Rank(3));
        ASSERT_EQ(node.relay.queue(Rank(2))->datagrams(), 0U);
        const RelayQueue* const queue = node.relay.queue(Rank(3));
        if (queue == nullptr) continue;
        ASSERT_LE(queue->bytes(), options.queue.total_bytes);
        ASSERT_LE(queue->pairs(), options.queue.pairs);
        ASSERT_LE(node.relay.paced_pairs(), options.paced_pairs);
    }
    for (std::size_t i = static_cast<std::size_t>(Outcome::forwarded); i < kOutcomes; ++i) {
        const auto outcome = static_cast<Outcome>(i);
        if (outcome == Outcome::no_route) continue;
        EXPECT_GT(node.relay.count(outcome), 0U) << i;
    }
    node.relay.expire(now + milliseconds(100));
    EXPECT_EQ(node.relay.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace nexar::routing::relaying
