#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"

// The network path: its MTU, and when it changes.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::DatagramNet;
using nexar::sim::World;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using port::Lane;
using ::testing::HasSubstr;

class PathWidth : public ::testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

// The MTU of the network, and the discovered size: the largest of the list that fits.
INSTANTIATE_TEST_SUITE_P(Widths, PathWidth,
                         ::testing::Values(std::pair{65'507U, 65'000U}, std::pair{65'000U, 65'000U},
                                           std::pair{64'999U, 8952U}, std::pair{8952U, 8952U},
                                           std::pair{8951U, 4052U}, std::pair{1452U, 1452U},
                                           std::pair{1451U, 1392U}, std::pair{1280U, 1280U},
                                           std::pair{1279U, 1200U}, std::pair{1200U, 1200U}),
                         [](const auto& width) { return std::to_string(width.param.first); });

TEST_P(PathWidth, is_discovered_in_both_directions) {
    QuicPair pair({.weather = {.mtu = GetParam().first}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(5s);
    EXPECT_EQ(pair.client().connection().statistics().datagram_bytes, GetParam().second);
    EXPECT_EQ(pair.server().connection().statistics().datagram_bytes, GetParam().second);
    const auto content = pattern(1, 1'000'000);
    pair.client().send(content);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 5s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
}

TEST(ConnectionPath, continues_when_the_mtu_shrinks_in_mid_transfer) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 20'000'000);
    pair.client().send(content);
    pair.world.run_for(8ms);
    ASSERT_EQ(pair.client().connection().statistics().datagram_bytes, 65'000U);
    ASSERT_FALSE(pair.client().all_released());
    pair.net.weather.mtu = 1452;
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 25s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_GE(pair.client().connection().statistics().black_holes, 1U);
}

TEST(ConnectionPath, never_probes_more_than_the_mtu_of_the_interface) {
    QuicPair pair;
    pair.client_side.host().interface_limit = 1452;
    pair.server_side.host().interface_limit = 8952;
    std::size_t most_there = 0;
    std::size_t most_back = 0;
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        const bool back = datagram.to == pair.client_side.host().address();
        std::size_t& most = back ? most_back : most_there;
        most = std::max(most, datagram.bytes.size());
        return true;
    };
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 1'000'000));
    pair.server().send(pattern(2, 1'000'000));
    pair.world.run_for(1s);
    EXPECT_EQ(most_there, 1452U);
    EXPECT_EQ(most_back, 8952U);
}

/// The sizes of the client's datagrams that carry more than acknowledgements, while `write` runs.
std::vector<std::size_t> datagrams_of(QuicPair& pair, const std::function<void()>& write) {
    std::vector<std::size_t> sizes;
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        const bool there = datagram.to == pair.server_side.host().address();
        if (there && datagram.bytes.size() > 1000) sizes.push_back(datagram.bytes.size());
        return true;
    };
    write();
    pair.world.run_for(100ms);
    pair.net.tap = {};
    return sizes;
}

TEST(ConnectionPath, is_probed_at_once_when_a_lane_has_more_than_a_packet) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(10ms);
    EXPECT_LT(pair.client().connection().statistics().datagram_bytes, 1500U);
    ASSERT_TRUE(pair.client().write(Lane::eager, pattern(1, 3000)));
    pair.world.run_for(10ms);
    EXPECT_EQ(pair.client().connection().statistics().datagram_bytes, 65'000U);
}

TEST(ConnectionPath, carries_messages_in_parts_while_the_peer_has_a_free_processor) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(5s);
    const auto content = pattern(1, 60'000);
    const auto write = [&] { ASSERT_TRUE(pair.client().write(Lane::eager, content)); };
    const auto parts = datagrams_of(pair, write);
    EXPECT_GE(parts.size(), 3U);
    EXPECT_LE(parts.size(), 4U);
    EXPECT_THAT(parts,
                ::testing::Each(::testing::AllOf(::testing::Ge(10'000U), ::testing::Le(30'000U))));
    pair.client_side.endpoint().set_crowded(true);
    EXPECT_THAT(datagrams_of(pair, write), ::testing::ElementsAre(::testing::Ge(60'000U)));
    EXPECT_EQ(pair.server().lane(Lane::eager).bytes.size(), 120'000U);
}

TEST(ConnectionPath, marks_packets_with_ecn_and_reacts_to_congestion_marks) {
    QuicPair pair({.weather = {.delay = 1ms}});
    std::uint64_t marked = 0;
    bool congested = false;
    pair.net.tap = [&](nexar::sim::Datagram& datagram) {
        if (datagram.ecn != 0) ++marked;
        if (congested && datagram.ecn == 2) datagram.ecn = 3;
        return true;
    };
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 5'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 5s));
    EXPECT_GT(marked, 50U);
    const std::uint64_t before = pair.client().connection().statistics().congestion_window;
    congested = true;
    pair.client().send(pattern(2, 5'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 5s));
    EXPECT_LT(pair.client().connection().statistics().congestion_window, before);
}

TEST(ConnectionPath, continues_when_a_nat_gives_the_client_another_address) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 200'000'000 / 4);
    pair.client().send(content);
    for (unsigned i = 0; i < 3; ++i) {
        pair.world.run_for(8ms);
        pair.client_side.host().rebind(DatagramNet::address(100 + i));
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 30s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_GE(pair.server().connection().statistics().path_changes, 1U);
    EXPECT_EQ(pair.server().connection().remote(), DatagramNet::address(102));
    ASSERT_TRUE(pair.server().write(Lane::eager, bytes_of("found you")));
    EXPECT_TRUE(
        pair.run_until([&] { return pair.client().lane(Lane::eager).bytes.size() == 9; }, 1s));
}

TEST(ConnectionPath, follows_a_peer_to_another_port_and_another_host) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    for (const Address& to : {DatagramNet::address(1).with_port(9), DatagramNet::address(300)}) {
        pair.client_side.host().rebind(to);
        ASSERT_TRUE(pair.client().write(Lane::rpc, bytes_of("x")));
        pair.world.run_for(2s);
        EXPECT_EQ(pair.server().connection().remote(), to);
        ASSERT_TRUE(pair.server().is_up());
    }
}

TEST(ConnectionPath, the_dialer_can_move_the_connection_in_mid_transfer) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 30'000'000);
    pair.client().send(content);
    pair.server().send(content);
    pair.world.run_for(10ms);
    const Address other = DatagramNet::address(55);
    pair.client_side.host().add_address(other);
    std::uint64_t from_other = 0;
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        if (datagram.from == other) ++from_other;
        return true;
    };
    ASSERT_TRUE(pair.client().connection().migrate(pair.world.now(), other));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().all_released() && pair.server().all_released(); }, 30s));
    EXPECT_GT(from_other, 100U);
    EXPECT_EQ(pair.server().connection().remote(), other);
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_TRUE(pair.client().incoming(0).sink.bytes == content);
}

TEST(ConnectionPath, the_side_that_was_dialed_cannot_move) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto moved =
        pair.server().connection().migrate(pair.world.now(), DatagramNet::address(9));
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code(), Errc::unsupported);
    EXPECT_THAT(moved.error().cause(), HasSubstr("10.0.0.1:7400"));
}

TEST(ConnectionPath, a_move_to_a_dead_path_falls_back_or_fails) {
    QuicPair pair({.client = {.idle_timeout = 5s}, .server = {.idle_timeout = 5s}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    const Address nowhere = DatagramNet::address(66);
    pair.client_side.host().add_address(nowhere);
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        return datagram.from != nowhere && datagram.to != nowhere;
    };
    ASSERT_TRUE(pair.client().connection().migrate(pair.world.now(), nowhere));
    const auto stream = pair.client().send(pattern(1, 10'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 30s));
    if (pair.client().is_up()) {
        EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::delivered);
    } else {
        EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::link_lost);
        EXPECT_FALSE(pair.client().down()->cause().empty());
    }
}

TEST(ConnectionPath, works_over_ipv6) {
    World world(3);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    nexar::testing::Side client(net.add_host(Address::parse("[fd00::1]:7400").value(),
                                             QuicPair::endpoint_options(cluster.node(1))));
    nexar::testing::Side server(net.add_host(Address::parse("[fd00::2]:7400").value(),
                                             QuicPair::endpoint_options(cluster.node(2))));
    LinkEnd& end = client.dial(server.host().address(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(world.run_until([&] { return end.is_up(); }, 1s));
    end.send(pattern(1, 100'000));
    ASSERT_TRUE(world.run_until([&] { return end.all_released(); }, 1s));
    EXPECT_EQ(server.accepted().incoming(0).sink.bytes, pattern(1, 100'000));
}

}  // namespace
}  // namespace nexar::quic
