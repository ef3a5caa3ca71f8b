// Relayed datagrams on QUIC connections: how they share a link with its own traffic.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using port::Lane;

/// What is between the two ends.
struct Bottleneck {
    const char* name;
    std::size_t mtu;
    Duration turn_cost;  // of the sender: the time that writing about 128 KiB takes
    double loss;         // keeps the congestion window small
    std::size_t datagram;
};

/// A saturated connection whose client always has relayed datagrams, and a stream if the test
/// starts one.
class SaturatedConnection : public ::testing::TestWithParam<Bottleneck> {
protected:
    // The queue is long enough for everything that is written in one turn.
    SaturatedConnection()
        : pair_({.client = {.relayed_queue = 2 << 20},
                 .weather = {.delay = 500us, .mtu = GetParam().mtu}}) {
        EXPECT_TRUE(pair_.connect());
        pair_.world.run_for(2s);  // until the MTU of the path is known
        pair_.net.weather.loss = GetParam().loss;
        pair_.world.set_turn_cost(pair_.client_side.actor(), GetParam().turn_cost);
    }

    port::Link& link() { return pair_.client().link(); }
    void flood() {
        const std::size_t bytes = GetParam().datagram;
        while (link().relayed_room() >= bytes) link().send_relayed(pattern(1, bytes));
        pair_.world.after(100us, [this] { flood(); });
    }
    void stream() {
        content_ = pattern(2, 60'000'000);
        pair_.client().send(content_);
    }

    struct Bytes {
        double relayed = 0;
        double own = 0;
    };
    /// What arrives in `span`.
    Bytes arriving_in(Duration span) {
        LinkEnd& server = pair_.server();
        const auto own = [&] {
            return server.opened().empty() ? 0 : server.incoming(0).sink.bytes.size();
        };
        server.datagrams.clear();
        const std::size_t before = own();
        pair_.world.run_for(span);
        return {.relayed = static_cast<double>(server.datagrams.size() * GetParam().datagram),
                .own = static_cast<double>(own() - before)};
    }

    QuicPair pair_;
    std::vector<std::byte> content_{};
};

INSTANTIATE_TEST_SUITE_P(Bottlenecks, SaturatedConnection,
                         ::testing::Values(Bottleneck{"busy_sender", 1452, 4ms, 0, 1200},
                                           Bottleneck{"busy_sender_with_wide_packets", 65'507, 4ms,
                                                      0, 1200},
                                           Bottleneck{"wide_datagrams", 65'507, 4ms, 0, 50'000},
                                           Bottleneck{"small_datagrams", 1452, 4ms, 0, 90},
                                           Bottleneck{"lossy_path", 1452, 0ms, 0.02, 1200}),
                         [](const auto& bottleneck) { return std::string(bottleneck.param.name); });

TEST_P(SaturatedConnection, is_shared_evenly_while_both_kinds_of_traffic_wait) {
    flood();
    stream();
    pair_.world.run_for(300ms);
    const Bytes both = arriving_in(500ms);
    EXPECT_GT(both.own, 500'000);
    // Half each, in bytes of packets: those of small datagrams are in part headers.
    EXPECT_GE(both.own, 0.47 * (both.own + both.relayed));
    EXPECT_GE(both.relayed, 0.40 * (both.own + both.relayed));
}

TEST_P(SaturatedConnection, belongs_to_the_traffic_that_waits_alone) {
    flood();
    pair_.world.run_for(300ms);
    const Bytes relayed = arriving_in(300ms);
    EXPECT_EQ(relayed.own, 0);
    stream();
    pair_.world.run_for(300ms);
    const Bytes both = arriving_in(300ms);
    EXPECT_GT(relayed.relayed, 1.5 * both.relayed);
}

TEST_P(SaturatedConnection, lets_heartbeats_and_messages_overtake_what_it_relays) {
    flood();
    stream();
    pair_.world.run_for(300ms);
    const auto heartbeat = pattern(3, 60);
    auto& arrived = pair_.server().datagrams;
    const auto& messages = pair_.server().lane(Lane::eager).bytes;
    const double loss = std::exchange(pair_.net.weather.loss, 0);
    for (std::size_t i = 1; i <= 20; ++i) {
        arrived.clear();
        ASSERT_TRUE(link().send_datagram(heartbeat));
        ASSERT_TRUE(pair_.client().write(Lane::eager, bytes_of("barrier")));
        ASSERT_TRUE(pair_.run_until(
            [&] {
                return messages.size() == 7 * i &&
                       std::ranges::find(arrived, heartbeat) != arrived.end();
            },
            15ms))
            << i;
        pair_.net.weather.loss = loss;
        pair_.world.run_for(7ms);
        pair_.net.weather.loss = 0;
    }
}

TEST(ConnectionRelayed, a_datagram_beyond_a_shrunken_mtu_delays_nothing) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    const Address other = nexar::sim::DatagramNet::address(77);
    pair.client_side.host().add_address(other);
    port::Link& link = pair.client().link();
    ASSERT_TRUE(link.send_relayed(pattern(1, 60'000)));
    ASSERT_TRUE(link.send_datagram(pattern(2, 50'000)));
    ASSERT_TRUE(link.send_datagram(pattern(3, 50)));
    ASSERT_TRUE(pair.client().connection().migrate(pair.world.now(), other));
    ASSERT_TRUE(pair.client().write(Lane::eager, bytes_of("behind it")));
    ASSERT_TRUE(pair.run_until(
        [&] {
            return pair.server().lane(Lane::eager).bytes.size() == 9 &&
                   !pair.server().datagrams.empty();
        },
        100ms));
    EXPECT_EQ(pair.server().datagrams.back(), pattern(3, 50));
}

TEST(ConnectionRelayed, a_wide_datagram_does_not_wait_for_a_stream_that_is_sent_in_parts) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    port::Link& link = pair.client().link();
    pair.client().send(pattern(1, 60'000));
    ASSERT_TRUE(link.send_relayed(pattern(2, 40'000)));
    ASSERT_TRUE(link.send_datagram(pattern(3, 30'000)));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().datagrams.size() == 2; }, 100ms));
    EXPECT_EQ(pair.server().datagrams[0], pattern(3, 30'000));
    EXPECT_EQ(pair.server().datagrams[1], pattern(2, 40'000));
}

TEST(ConnectionRelayed, several_small_datagrams_share_a_packet) {
    QuicPair pair({.weather = {.mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(2s);
    std::size_t packets = 0;
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        if (datagram.to == pair.server_side.host().address()) ++packets;
        return true;
    };
    for (std::size_t i = 0; i < 40; ++i) {
        ASSERT_TRUE(pair.client().link().send_relayed(pattern(i, 100)));
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.server().datagrams.size() == 40; }, 1s));
    EXPECT_LE(packets, 6U);
}

TEST(ConnectionRelayed, a_flush_is_urgent_while_datagrams_wait) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    ASSERT_TRUE(pair.client().connection().can_wait(pair.world.now()));
    ASSERT_TRUE(pair.client().link().send_relayed(pattern(1, 100)));
    EXPECT_FALSE(pair.client().connection().can_wait(pair.world.now()));
}

TEST(ConnectionRelayed, the_peer_needs_no_credit_for_what_is_relayed) {
    // A stream whose receiver takes nothing uses up its window, and the connection's.
    QuicPair pair({.server = {.connection_window = 2 << 20}, .weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        end.incoming(stream).sink.allowance = 0;
        end.receive(stream);
    };
    for (int i = 0; i < 8; ++i) pair.client().send(pattern(1, 4'000'000));
    pair.world.run_for(1s);
    std::size_t sent = 0;
    for (int round = 0; round < 20; ++round) {
        while (pair.client().link().relayed_room() >= 1000) {
            ASSERT_TRUE(pair.client().link().send_relayed(pattern(2, 1000)));
            ++sent;
        }
        pair.world.run_for(50ms);
        ASSERT_EQ(pair.server().datagrams.size(), sent);
    }
}

}  // namespace
}  // namespace nexar::quic
