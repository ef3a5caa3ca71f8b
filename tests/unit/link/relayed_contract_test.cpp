#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "support/quic_pair.hpp"
#include "support/shm_pair.hpp"
#include "unit/link/sim/sim_pair.hpp"

/// What port::Link promises of the datagrams that a node relays for others, for every kind of link
/// that takes them.
namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;

template <class Pair>
class RelayedContract : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(pair_.connect()); }
    LinkEnd& client() { return pair_.client(); }
    LinkEnd& server() { return pair_.server(); }
    port::Link& link() { return client().link(); }
    void settle() { pair_.world.run_for(500ms); }
    /// Sends datagrams of this size while there is room for them.
    std::size_t fill(std::size_t bytes) {
        std::size_t count = 0;
        while (link().relayed_room() >= bytes) {
            EXPECT_TRUE(link().send_relayed(pattern(count++, bytes)));
        }
        return count;
    }

    Pair pair_;
};

using RelayingKinds = ::testing::Types<SimPair, QuicPair>;
TYPED_TEST_SUITE(RelayedContract, RelayingKinds);

TYPED_TEST(RelayedContract, relayed_datagrams_arrive_unless_they_are_too_large) {
    const std::size_t most = this->link().max_datagram();
    for (const std::size_t bytes : {std::size_t{500}, std::size_t{0}, most}) {
        EXPECT_TRUE(this->link().send_relayed(pattern(bytes, bytes)));
    }
    EXPECT_FALSE(this->link().send_relayed(pattern(1, most + 1)));
    this->settle();
    ASSERT_EQ(this->server().datagrams.size(), 3U);
    for (const auto& datagram : this->server().datagrams) {
        EXPECT_EQ(datagram, pattern(datagram.size(), datagram.size()));
    }
}

TYPED_TEST(RelayedContract, those_of_this_node_go_first) {
    const std::size_t relayed = this->fill(700);
    const auto heartbeat = pattern(99, 60);
    ASSERT_TRUE(this->link().send_datagram(heartbeat));
    this->settle();
    ASSERT_EQ(this->server().datagrams.size(), relayed + 1);
    EXPECT_EQ(this->server().datagrams[0], heartbeat);
}

TYPED_TEST(RelayedContract, takes_a_bounded_amount_all_of_which_arrives) {
    EXPECT_GE(this->link().relayed_room(), this->link().max_datagram());
    std::size_t sent = 0;
    for (int round = 0; round < 40; ++round) {
        const std::size_t count = this->fill(900);
        EXPECT_LE(count * 900, std::size_t{128} * 1024);
        EXPECT_FALSE(this->link().send_relayed(pattern(1, 900))) << "there is no room";
        sent += count;
        this->settle();
        ASSERT_EQ(this->server().datagrams.size(), sent);
    }
    EXPECT_GE(sent, 40 * 10U);
    EXPECT_GE(this->link().relayed_room(), this->link().max_datagram());
}

TYPED_TEST(RelayedContract, a_link_that_is_closed_sends_what_it_has_and_takes_no_more) {
    const std::size_t count = this->fill(500);
    this->link().close("done");
    EXPECT_EQ(this->link().relayed_room(), 0U);
    EXPECT_FALSE(this->link().send_relayed(pattern(1, 1)));
    ASSERT_TRUE(this->pair_.run_until([&] { return this->server().down().has_value(); }));
    EXPECT_EQ(this->server().datagrams.size(), count);
}

TYPED_TEST(RelayedContract, a_link_that_is_dropped_takes_nothing) {
    this->fill(500);
    this->link().drop("done");
    EXPECT_EQ(this->link().relayed_room(), 0U);
    EXPECT_FALSE(this->link().send_relayed(pattern(1, 1)));
    ASSERT_TRUE(this->pair_.run_until([&] { return this->client().down().has_value(); }));
}

TYPED_TEST(RelayedContract, lanes_and_streams_go_on) {
    this->fill(800);
    const auto content = pattern(2, 700'000);
    this->client().send(content);
    ASSERT_TRUE(this->client().write(Lane::eager, pattern(3, 50'000)));
    this->settle();
    this->fill(800);
    ASSERT_TRUE(this->pair_.run_until([&] { return this->client().all_released(); }));
    this->settle();
    EXPECT_TRUE(this->server().incoming(0).sink.bytes == content);
    EXPECT_EQ(this->server().lane(Lane::eager).bytes, pattern(3, 50'000));
}

TEST(RelayedDatagrams, are_not_for_links_in_shared_memory) {
    ShmPair pair;
    ASSERT_TRUE(pair.connect());
    EXPECT_EQ(pair.client().link().relayed_room(), 0U);
    EXPECT_FALSE(pair.client().link().send_relayed(pattern(1, 1)));
}

/// A simulated link of 2 MB/s, which the client fills with relayed datagrams.
class SlowLink : public ::testing::Test {
protected:
    static constexpr std::size_t kDatagram = 1000;
    static constexpr double kRate = 2e6;

    SlowLink() : pair_(1, options()) { EXPECT_TRUE(pair_.connect()); }

    static sim::FabricOptions options() {
        sim::FabricOptions options;
        options.weather.bytes_per_second = static_cast<std::uint64_t>(kRate);
        options.weather.largest_piece = 1400;
        return options;
    }
    void fill() {
        if (!floods_) return;
        while (pair_.client().link().relayed_room() >= kDatagram) {
            pair_.client().link().send_relayed(pattern(1, kDatagram));
        }
        pair_.world.after(500us, [this] { fill(); });
    }
    /// Bytes of datagrams and of the first stream that arrive in a second.
    std::pair<double, double> second() {
        const auto stream = [&] {
            LinkEnd& server = pair_.server();
            return server.opened().empty() ? 0 : server.incoming(0).sink.bytes.size();
        };
        const std::size_t datagrams = pair_.server().datagrams.size();
        const std::size_t bytes = stream();
        pair_.world.run_for(1s);
        return {static_cast<double>((pair_.server().datagrams.size() - datagrams) * kDatagram),
                static_cast<double>(stream() - bytes)};
    }

    SimPair pair_;
    bool floods_ = true;
};

TEST_F(SlowLink, is_shared_evenly_while_both_kinds_of_traffic_wait) {
    fill();
    pair_.world.run_for(500ms);
    auto [datagrams, stream] = second();
    EXPECT_NEAR(datagrams, kRate, kRate * 0.05) << "nothing else waits";
    pair_.client().send(pattern(1, 10'000'000));
    pair_.world.run_for(500ms);
    std::tie(datagrams, stream) = second();
    EXPECT_NEAR(datagrams, kRate / 2, kRate * 0.05);
    EXPECT_NEAR(stream, kRate / 2, kRate * 0.05);
    floods_ = false;
    pair_.world.run_for(500ms);
    std::tie(datagrams, stream) = second();
    EXPECT_EQ(datagrams, 0);
    EXPECT_NEAR(stream, kRate, kRate * 0.05) << "nothing else waits";
}

TEST_F(SlowLink, datagrams_do_not_wait_for_long) {
    pair_.client().send(pattern(1, 20'000'000));
    fill();
    pair_.world.run_for(1s);
    const auto heartbeat = pattern(7, 60);
    for (int i = 0; i < 50; ++i) {
        floods_ = false;
        pair_.world.run_for(2ms);  // until there is room for another one
        // It goes behind everything that is relayed.
        ASSERT_TRUE(pair_.client().link().send_relayed(pattern(8, 16)));
        ASSERT_TRUE(pair_.client().link().send_datagram(heartbeat));
        auto& arrived = pair_.server().datagrams;
        const TimePoint sent = pair_.world.now();
        ASSERT_TRUE(pair_.run_until(
            [&] { return std::ranges::find(arrived, heartbeat) != arrived.end(); }, 1ms));
        ASSERT_TRUE(pair_.run_until(
            [&] { return std::ranges::find(arrived, pattern(8, 16)) != arrived.end(); }, 1s));
        EXPECT_LT(pair_.world.now() - sent, 25ms);
        arrived.clear();
        floods_ = true;
        fill();
        pair_.world.run_for(20ms);
    }
}

}  // namespace

}  // namespace nexar::testing
