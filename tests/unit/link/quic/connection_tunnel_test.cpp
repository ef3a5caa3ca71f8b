// Connections whose packets travel in tunnels, and their moves between a tunnel and a direct path.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/random.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/tunnel_path.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::Side;
using port::Lane;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NodeId id_of(std::uint64_t index) {
    return QuicPair::node(index)->identity().node;
}

Address tunnel_to(std::uint64_t index) {
    return Address::tunnel(id_of(index).bytes());
}

/// What the relays of a tunnel do to its packets.
struct Relays {
    Duration delay = 1ms;
    std::size_t widest = 65'000;  // larger packets are lost
    double loss = 0;
    double twice = 0;
    double late = 0;  // overtaken by others
    double altered = 0;
    bool cut = false;
    std::optional<NodeId> source{};  // what they claim, instead of the client
};

/// A client (node 1) and a server (node 2) that have a direct path and a tunnel.
struct TunnelPair : QuicPair {
    explicit TunnelPair(std::uint64_t seed = 1)
        : QuicPair({.seed = seed, .weather = {.delay = 200us}}), random(seed) {
        client_side.carry_tunnels([this](port::TunnelPacket packet) {
            carry(relays.source.value_or(id_of(1)), server_side, std::move(packet.bytes));
        });
        server_side.carry_tunnels([this](port::TunnelPacket packet) {
            carry(id_of(2), client_side, std::move(packet.bytes));
        });
    }

    LinkEnd& dial_through_tunnel() {
        const auto link = client_side.host().dial(
            world.now(), {.address = tunnel_to(2), .peer = port::MemberTarget{id_of(2)}});
        end = &client_side.dialed(link.value());
        return *end;
    }
    LinkEnd& near() { return end == nullptr ? client() : *end; }

    bool chance(double of) { return random.chance(of); }
    void carry(const NodeId& from, Side& to, std::vector<std::byte> bytes) {
        if (relays.cut || bytes.size() > relays.widest || chance(relays.loss)) return;
        ++carried;
        if (chance(relays.altered)) bytes[random.next() % bytes.size()] ^= std::byte{0x10};
        const int copies = chance(relays.twice) ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            const Duration delay = chance(relays.late) ? 5 * relays.delay : relays.delay;
            world.after(delay, [this, from, &to, bytes] {
                to.host().on_tunnelled(world.now(), from, bytes);
            });
        }
    }
    void cut_direct_path() { net.partition(client_side.host(), server_side.host()); }
    void heal_direct_path() { net.heal_all(); }

    Relays relays{};
    Random random;
    std::uint64_t carried = 0;
    LinkEnd* end = nullptr;
};

TEST(TunnelAddress, names_a_node_and_no_socket) {
    const Address tunnel = tunnel_to(2);
    EXPECT_TRUE(tunnel.is_tunnel());
    EXPECT_EQ(tunnel.tunnel_end(), id_of(2).bytes());
    EXPECT_NE(tunnel, tunnel_to(1));
    EXPECT_EQ(tunnel.text(), "a tunnel to node " + id_of(2).to_hex());
    EXPECT_FALSE(Address::any(true).is_tunnel());
    EXPECT_FALSE(Address::parse("[fd00::1]:0")->is_tunnel());
    EXPECT_NE(tunnel_local(), Address::any(true));
}

TEST(ConnectionTunnel, forms_without_a_direct_path_and_carries_data_both_ways) {
    TunnelPair pair;
    pair.cut_direct_path();
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    const auto there = pattern(1, 3'000'000);
    const auto back = pattern(2, 2'000'000);
    client.send(there);
    pair.server().send(back);
    ASSERT_TRUE(
        pair.run_until([&] { return client.all_released() && pair.server().all_released(); }, 10s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == there);
    EXPECT_TRUE(client.incoming(0).sink.bytes == back);
    EXPECT_EQ(pair.server().connection().remote(), tunnel_to(1));
    EXPECT_EQ(pair.net.datagrams_sent(), 0U);
}

TEST(ConnectionTunnel, forms_over_relays_that_carry_1200_bytes) {
    TunnelPair pair;
    pair.relays.widest = 1200;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    client.send(pattern(1, 300'000));
    ASSERT_TRUE(pair.run_until([&] { return client.all_released(); }, 10s));
    EXPECT_EQ(client.connection().statistics().datagram_bytes, 1200U);
}

TEST(ConnectionTunnel, finds_the_largest_packet_that_relays_carry) {
    TunnelPair pair;
    pair.relays.widest = 1373;  // over Ethernet
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    client.send(pattern(1, 300'000));
    ASSERT_TRUE(pair.run_until([&] { return client.all_released(); }, 10s));
    pair.world.run_for(5s);
    EXPECT_EQ(client.connection().statistics().datagram_bytes, 1280U);
}

TEST(ConnectionTunnel, only_packets_that_are_authentic_and_new_prove_that_they_got_through) {
    TunnelPair pair;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    pair.world.run_for(100ms);
    std::vector<std::byte> caught;
    pair.client_side.carry_tunnels([&](port::TunnelPacket packet) { caught = packet.bytes; });
    client.link().send_datagram(pattern(1, 100));
    ASSERT_TRUE(pair.run_until([&] { return !caught.empty(); }, 100ms));
    const auto arrives = [&](const NodeId& from, const std::vector<std::byte>& packet) {
        return pair.server_side.host().on_tunnelled(pair.world.now(), from, packet);
    };
    std::vector<std::byte> altered = caught;
    altered.back() ^= std::byte{1};
    EXPECT_FALSE(arrives(id_of(1), altered));
    EXPECT_FALSE(arrives(id_of(3), caught)) << "another source";
    EXPECT_TRUE(arrives(id_of(1), caught));
    EXPECT_FALSE(arrives(id_of(1), caught)) << "a repeated packet";
}

TEST(ConnectionTunnel, a_handshake_in_envelopes_of_another_node_is_refused) {
    TunnelPair pair;
    pair.relays.source = id_of(3);
    pair.client_side.carry_tunnels([&](port::TunnelPacket packet) {
        pair.carry(id_of(3), pair.server_side, std::move(packet.bytes));
    });
    pair.server_side.carry_tunnels([&](port::TunnelPacket packet) {
        EXPECT_EQ(packet.to, id_of(3));
        pair.carry(id_of(2), pair.client_side, std::move(packet.bytes));
    });
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 20s));
    EXPECT_EQ(pair.server_side.accepted_count(), 0U);
    ASSERT_EQ(pair.server_side.refused().size(), 1U);
    EXPECT_EQ(pair.server_side.refused()[0].reason.code(), Errc::protocol_violation);
    EXPECT_THAT(pair.server_side.refused()[0].reason.cause(), HasSubstr("another node"));
}

TEST(ConnectionTunnel, packets_in_envelopes_of_another_node_are_dropped) {
    TunnelPair pair;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    pair.world.run_for(100ms);
    pair.relays.source = id_of(3);
    ASSERT_TRUE(client.write(Lane::eager, bytes_of("late")));
    pair.world.run_for(500ms);
    EXPECT_GT(pair.server_side.endpoint().counts().forged, 0U);
    EXPECT_TRUE(pair.server().lane(Lane::eager).bytes.empty());
    pair.relays.source.reset();
    ASSERT_TRUE(
        pair.run_until([&] { return pair.server().lane(Lane::eager).bytes.size() == 4; }, 5s));
    EXPECT_EQ(pair.server().connection().remote(), tunnel_to(1));
}

TEST(ConnectionTunnel, a_transfer_goes_on_in_the_tunnel_when_the_direct_path_is_cut) {
    TunnelPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(50ms);  // until each side has connection ids for another path
    const auto content = pattern(1, 20'000'000);
    pair.client().send(content);
    pair.server().send(content);
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().opened().size() == 1 && pair.server().opened().size() == 1; },
        1s));
    pair.cut_direct_path();
    pair.world.run_for(3s);  // both senders have filled their windows and backed off
    ASSERT_FALSE(pair.client().all_released());
    const std::size_t there = pair.server().incoming(0).sink.bytes.size();
    const std::size_t back = pair.client().incoming(0).sink.bytes.size();
    pair.client().link().move_to(tunnel_to(2));
    ASSERT_TRUE(pair.run_until([&] { return !pair.client().paths.empty(); }, 100ms));
    EXPECT_TRUE(pair.run_until(
        [&] {
            return pair.server().incoming(0).sink.bytes.size() > there + 500'000 &&
                   pair.client().incoming(0).sink.bytes.size() > back + 500'000;
        },
        500ms));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().all_released() && pair.server().all_released(); }, 30s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_TRUE(pair.client().incoming(0).sink.bytes == content);
    EXPECT_THAT(pair.client().paths, ElementsAre(tunnel_to(2)));
    EXPECT_THAT(pair.server().paths, ElementsAre(tunnel_to(1)));
}

TEST(ConnectionTunnel, a_link_whose_congestion_window_is_full_moves_at_once) {
    for (const Duration after : {100ms, 600ms, 2000ms}) {
        SCOPED_TRACE(after.count());
        TunnelPair pair;
        ASSERT_TRUE(pair.connect());
        pair.world.run_for(2s);
        const auto there = pattern(1, 8'000'000);
        const auto back = pattern(2, 30'000'000);
        pair.client().send(there);
        pair.server().send(back);
        pair.world.run_for(2ms);
        pair.cut_direct_path();
        pair.world.run_for(after);
        for (LinkEnd* const end : {&pair.client(), &pair.server()}) {
            const auto values = end->connection().statistics();
            ASSERT_GE(values.in_flight, values.congestion_window);
        }
        pair.client().link().move_to(tunnel_to(2));
        ASSERT_TRUE(pair.run_until(
            [&] { return !pair.client().paths.empty() && !pair.server().paths.empty(); }, 100ms));
        ASSERT_TRUE(pair.run_until(
            [&] { return pair.client().all_released() && pair.server().all_released(); }, 20s));
        EXPECT_TRUE(pair.server().incoming(0).sink.bytes == there);
        EXPECT_TRUE(pair.client().incoming(0).sink.bytes == back);
        pair.world.run_for(5s);
        EXPECT_TRUE(pair.client().is_up());
    }
}

TEST(ConnectionTunnel, a_link_whose_peer_cannot_answer_for_a_full_window_moves_the_second_time) {
    TunnelPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(2s);
    const auto content = pattern(2, 30'000'000);
    pair.server().send(content);
    pair.world.run_for(2ms);
    pair.cut_direct_path();
    pair.world.run_for(600ms);
    const auto values = pair.server().connection().statistics();
    ASSERT_GE(values.in_flight, values.congestion_window);
    const auto here = pair.client().connection().statistics();
    ASSERT_LT(here.in_flight, here.congestion_window);
    pair.client().link().move_to(tunnel_to(2));
    ASSERT_TRUE(pair.run_until([&] { return !pair.client().failed_paths.empty(); }, 200ms));
    pair.client().link().move_to(tunnel_to(2));
    ASSERT_TRUE(pair.run_until(
        [&] { return !pair.client().paths.empty() && !pair.server().paths.empty(); }, 100ms));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().all_released(); }, 20s));
    EXPECT_TRUE(pair.client().incoming(0).sink.bytes == content);
}

TEST(ConnectionTunnel, returns_to_the_direct_path_and_its_large_datagrams) {
    TunnelPair pair;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    pair.relays.widest = 1200;
    client.send(pattern(1, 500'000));
    pair.world.run_for(20ms);
    const Address direct = pair.server_side.host().address();
    client.link().move_to(direct);
    ASSERT_TRUE(pair.run_until([&] { return client.connection().remote() == direct; }, 1s));
    const std::uint64_t carried = pair.carried;
    client.send(pattern(2, 5'000'000));
    ASSERT_TRUE(pair.run_until([&] { return client.all_released(); }, 10s));
    EXPECT_LT(pair.carried, carried + 20);
    EXPECT_TRUE(pair.server().incoming(1).sink.bytes == pattern(2, 5'000'000));
    EXPECT_EQ(pair.server().connection().remote(), pair.client_side.host().address());
    EXPECT_GT(client.connection().statistics().datagram_bytes, 60'000U);
}

TEST(ConnectionTunnel, a_move_to_a_dead_path_changes_nothing) {
    TunnelPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(100ms);
    pair.relays.cut = true;
    const auto content = pattern(1, 30'000'000);
    pair.client().send(content);
    for (int i = 0; i < 10; ++i) {
        pair.client().link().move_to(tunnel_to(2));
        ASSERT_TRUE(pair.run_until(
            [&] { return pair.client().failed_paths.size() == static_cast<std::size_t>(i) + 1; },
            2s));
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 10s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_TRUE(pair.client().paths.empty());
    EXPECT_EQ(pair.client().connection().remote(), pair.server_side.host().address());
}

TEST(ConnectionTunnel, a_move_that_another_one_overtakes_fails_first) {
    TunnelPair pair;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    pair.world.run_for(100ms);
    const Address nowhere = sim::DatagramNet::address(99);
    client.link().move_to(nowhere);
    pair.world.run_for(1ms);
    client.link().move_to(pair.server_side.host().address());
    ASSERT_TRUE(pair.run_until([&] { return !client.paths.empty(); }, 1s));
    EXPECT_THAT(client.failed_paths, ElementsAre(nowhere));
    EXPECT_THAT(client.paths, ElementsAre(pair.server_side.host().address()));
}

TEST(ConnectionTunnel, only_the_dialer_moves_a_link) {
    TunnelPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(100ms);
    pair.server().link().move_to(tunnel_to(1));
    pair.world.run_for(1s);
    EXPECT_TRUE(pair.server().paths.empty());
    EXPECT_TRUE(pair.server().failed_paths.empty());
    EXPECT_EQ(pair.carried, 0U);
}

class HostileRelays : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, HostileRelays, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(HostileRelays, cause_only_delay) {
    TunnelPair pair(test_seed(GetParam()));
    pair.relays = {.loss = 0.05, .twice = 0.2, .late = 0.2, .altered = 0.05};
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 10s));
    const auto there = pattern(GetParam(), 1'000'000);
    const auto back = pattern(GetParam() + 100, 700'000);
    client.send(there);
    pair.server().send(back);
    ASSERT_TRUE(
        pair.run_until([&] { return client.all_released() && pair.server().all_released(); }, 60s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == there);
    EXPECT_TRUE(client.incoming(0).sink.bytes == back);
}

TEST_P(HostileRelays, moves_in_mid_transfer_lose_and_repeat_nothing) {
    TunnelPair pair(test_seed(GetParam()));
    pair.relays = {.loss = 0.02, .twice = 0.05, .late = 0.1};
    pair.net.weather.loss = 0.01;
    ASSERT_TRUE(pair.connect());
    const auto there = pattern(GetParam(), 8'000'000);
    const auto back = pattern(GetParam() + 100, 6'000'000);
    pair.client().send(there);
    pair.server().send(back);
    for (int i = 0; i < 20; ++i) {
        pair.world.run_for(std::chrono::milliseconds(2 + pair.random.next() % 20));
        const bool direct = !pair.client().connection().remote().is_tunnel();
        pair.client().link().move_to(direct ? tunnel_to(2) : pair.server_side.host().address());
        const std::size_t known = pair.client().paths.size() + pair.client().failed_paths.size();
        ASSERT_TRUE(pair.run_until(
            [&] { return pair.client().paths.size() + pair.client().failed_paths.size() > known; },
            5s));
    }
    EXPECT_GE(pair.client().paths.size(), 10U);
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().all_released() && pair.server().all_released(); }, 60s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == there);
    EXPECT_TRUE(pair.client().incoming(0).sink.bytes == back);
}

/// The server has nothing to send that would show that the tunnel works again.
TEST(TunnelLinks, that_lose_everything_for_a_while_go_on_after_a_quarter_of_that_time) {
    TunnelPair pair;
    LinkEnd& client = pair.dial_through_tunnel();
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    pair.world.run_for(1s);
    const auto content = pattern(1, 5000);
    for (Duration loss = 600ms; loss < 4s; loss += 100ms) {
        pair.relays.loss = 1;
        client.send(content);
        pair.world.run_for(loss);
        pair.relays.loss = 0;
        EXPECT_TRUE(pair.run_until([&] { return client.all_released(); }, loss / 4 + 100ms))
            << loss / 1ms << " ms";
        pair.world.run_for(5s);  // the peer replaces the connection ids
    }
}

}  // namespace
}  // namespace nexar::quic
