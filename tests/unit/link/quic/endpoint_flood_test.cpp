#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/endpoint.hpp"
#include "support/quic_pair.hpp"

// Limits on what strangers and misbehaving members may cost.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::Datagram;
using nexar::sim::DatagramNet;
using nexar::sim::World;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::Side;
using ::testing::HasSubstr;

/// A server, and a crowd at one address that sends hellos and never answers, except to a Retry if
/// the test allows it.
class Crowd : public ::testing::Test {
protected:
    void start(const GateLimits& gate, bool sees_retry = false) {
        auto options = QuicPair::endpoint_options(QuicPair::cluster().node(1));
        options.gate = gate;
        server_.emplace(net_.add_host(DatagramNet::address(1), std::move(options)));
        crowd_.emplace(net_.add_host(DatagramNet::address(300),
                                     QuicPair::endpoint_options(QuicPair::cluster().node(2))));
        net_.tap = [this, sees_retry](Datagram& datagram) {
            if (datagram.to != crowd_->host().address()) return true;
            ++answers_;
            const auto first = std::to_integer<unsigned>(datagram.bytes[0]);
            return sees_retry && (first & 0xf0U) == 0xf0U;
        };
    }
    void knock(std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) {
            crowd_->dial(server_->host().address(), expected());
        }
        world_.run_for(20ms);
    }
    LinkEnd& honest(unsigned index = 400) {
        Side& side = *sides_.emplace_back(std::make_unique<Side>(net_.add_host(
            DatagramNet::address(index), QuicPair::endpoint_options(QuicPair::cluster().node(3)))));
        return side.dial(server_->host().address(), expected());
    }
    bool gets_in(LinkEnd& end, Duration at_most) {
        return world_.run_until([&] { return end.is_up(); }, at_most);
    }
    const EndpointCounts& counts() { return server_->endpoint().counts(); }

    static security::Expectation expected() {
        return {.cluster = QuicPair::cluster().id(), .node = {}};
    }

    World world_{1};
    DatagramNet net_{world_};
    std::optional<Side> server_;
    std::optional<Side> crowd_;
    std::vector<std::unique_ptr<Side>> sides_;
    std::uint64_t answers_ = 0;
};

TEST_F(Crowd, must_prove_its_address_once_64_handshakes_are_half_open) {
    start({.new_per_second_before_retry = 1e6});
    knock(200);
    EXPECT_EQ(server_->endpoint().half_open(), 64U);
    EXPECT_EQ(counts().accepted, 64U);
    EXPECT_GE(counts().retries, 136U);
    EXPECT_TRUE(gets_in(honest(), 1s)) << "a client that proves its address connects";
}

TEST_F(Crowd, must_prove_its_address_above_100_new_ones_per_second) {
    start({.half_open_before_retry = 100'000, .half_open = 100'000});
    knock(150);
    EXPECT_GE(counts().accepted, 100U);
    EXPECT_LE(counts().accepted, 103U);
    EXPECT_GE(counts().retries, 47U);
}

TEST_F(Crowd, never_has_more_than_the_cap_half_open) {
    start({.half_open_before_retry = 10'000, .new_per_second_before_retry = 1e6, .half_open = 40});
    knock(100);
    EXPECT_EQ(server_->endpoint().half_open(), 30U) << "a quarter is reserved for members";
    EXPECT_GE(counts().evicted, 70U);
    // They expire whatever they send.
    world_.run_for(4s);
    EXPECT_LT(server_->endpoint().half_open(), 41U);
    crowd_->host().blocked = true;
    world_.run_for(4s);
    EXPECT_EQ(server_->endpoint().half_open(), 0U);
    EXPECT_EQ(server_->endpoint().connections(), 0U);
    EXPECT_TRUE(gets_in(honest(), 1s));
}

TEST_F(Crowd, learns_that_its_handshakes_ended_for_lack_of_slots) {
    start({.half_open_before_retry = 10'000, .new_per_second_before_retry = 1e6, .half_open = 40});
    net_.tap = {};
    // Only the server's last packet reaches the crowd.
    std::vector<LinkEnd*> ends;
    net_.partition(server_->host(), crowd_->host(), nexar::sim::Way::one);
    for (int i = 0; i < 30; ++i)
        ends.push_back(&crowd_->dial(server_->host().address(), expected()));
    world_.run_for(5ms);
    net_.heal_all();
    net_.partition(crowd_->host(), server_->host(), nexar::sim::Way::one);
    LinkEnd& newcomer = honest();
    ASSERT_TRUE(gets_in(newcomer, 100ms));
    EXPECT_EQ(counts().evicted, 1U);
    ASSERT_TRUE(ends[0]->down().has_value());
    EXPECT_EQ(ends[0]->down()->code(), Errc::timed_out);
    EXPECT_THAT(ends[0]->down()->cause(), HasSubstr("too many handshakes"));
}

TEST_F(Crowd, that_keeps_proving_its_address_does_not_keep_honest_clients_out) {
    start({}, true);
    // 600 handshakes per second for four seconds, also from the address of honest clients.
    for (int i = 0; i < 80; ++i) {
        for (int j = 0; j < 30; ++j) crowd_->dial(server_->host().address(), expected());
        world_.run_for(50ms);
        EXPECT_LE(server_->endpoint().half_open(), 112U);
        if (i % 10 != 5) continue;
        EXPECT_TRUE(gets_in(honest(310 + static_cast<unsigned>(i)), 1s)) << i;
    }
}

TEST_F(Crowd, of_one_network_cannot_use_up_the_rate_of_another) {
    start({.half_open_before_retry = 0, .per_network_per_second = 0.001, .per_network_burst = 10},
          true);
    knock(50);
    EXPECT_EQ(counts().accepted, 10U);
    EXPECT_GE(counts().dropped, 40U);
    LinkEnd& neighbour = honest(301);  // of the same /24 as the crowd
    EXPECT_FALSE(gets_in(neighbour, 1s));
    EXPECT_TRUE(gets_in(honest(600), 1s));
}

TEST_F(Crowd, gets_no_more_stateless_answers_than_the_budget) {
    start({.replies_per_second = 1000});
    for (std::uint64_t i = 0; i < 500; ++i) {
        auto junk = pattern(i, 100);
        junk[0] = std::byte{0x40};
        net_.inject({.from = crowd_->host().address(),
                     .to = server_->host().address(),
                     .bytes = std::move(junk)},
                    i * 10us);
    }
    world_.run_for(1s);
    EXPECT_EQ(counts().unknown, 500U);
    EXPECT_GE(answers_, 5U);
    EXPECT_LE(answers_, 10U + 5U + 1U) << "a burst of 10 ms, then the rate";
    EXPECT_EQ(counts().resets_sent, answers_);
}

TEST_F(Crowd, costs_the_server_bounded_memory) {
    start({});
    knock(2000);
    const auto usage = net_.pool().statistics().total;
    EXPECT_LE(usage.bytes_in_use, 1U << 20U);
    EXPECT_LE(server_->endpoint().connections(), 112U);
    EXPECT_TRUE(gets_in(honest(), 1s));
}

TEST(Flood, a_member_that_resets_streams_without_end_is_cut_off) {
    QuicPair pair({.server = {.resets_per_second = 100, .resets_burst = 200}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    std::size_t sent = 0;
    for (; sent < 2000 && pair.client().is_up(); ++sent) {
        const auto stream = pair.client().send(pattern(sent, 300'000));
        pair.world.run_for(250us);
        if (pair.client().is_up()) pair.client().link().cancel(stream);
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 1s));
    EXPECT_GT(sent, 200U);
    EXPECT_LT(sent, 1000U);
    EXPECT_EQ(pair.server().down()->code(), Errc::protocol_violation);
    EXPECT_THAT(pair.server().down()->cause(), HasSubstr("10.0.0.1:7400 resets streams"));
    EXPECT_EQ(pair.server_side.endpoint().counts().cut_off, 1U);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 1s));
}

TEST(Flood, a_member_that_refuses_streams_without_end_is_cut_off) {
    QuicPair pair({.client = {.resets_per_second = 100, .resets_burst = 200},
                   .server = {.resets_burst = 1e9}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        end.link().refuse(stream);
    };
    std::size_t sent = 0;
    for (; sent < 2000 && pair.client().is_up(); ++sent) {
        pair.client().send(pattern(sent, 300'000));
        pair.world.run_for(500us);
    }
    EXPECT_GT(sent, 200U);
    ASSERT_TRUE(pair.client().down().has_value());
    EXPECT_EQ(pair.client().down()->code(), Errc::protocol_violation);
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("10.0.0.2:7400 refuses streams"));
    EXPECT_EQ(pair.client_side.endpoint().counts().cut_off, 1U);
}

TEST(Flood, a_member_that_sends_packets_without_payload_is_cut_off) {
    // A keep-alive of a millisecond makes an honest implementation send only pings.
    QuicPair pair({.client = {.keep_alive = 1ms},
                   .server = {.idle_packets_per_second = 100, .idle_packets_burst = 300}});
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 5s));
    EXPECT_EQ(pair.server().down()->code(), Errc::limit_exceeded);
    EXPECT_THAT(pair.server().down()->cause(), HasSubstr("10.0.0.1:7400 sent more than"));
    EXPECT_EQ(pair.server_side.endpoint().counts().cut_off, 1U);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 1s));
}

TEST(Flood, a_member_that_only_answers_is_not_cut_off) {
    const LinkOptions strict{.idle_packets_per_second = 50, .idle_packets_burst = 100};
    // For bulk, lanes and datagrams: the answers carry only acknowledgements.
    QuicPair pair({.client = strict, .weather = {.delay = 1ms, .mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    for (std::size_t round = 0; round < 300 && pair.client().is_up(); ++round) {
        for (int i = 0; i < 10; ++i) pair.client().link().send_datagram(pattern(round, 1200));
        pair.world.run_for(1ms);
    }
    ASSERT_TRUE(pair.client().is_up()) << pair.client().down()->what();
    pair.client().send(pattern(1, 3'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 10s));
    EXPECT_TRUE(pair.client().is_up());
}

TEST(Flood, forged_packets_do_not_make_us_cut_off_an_honest_member) {
    const LinkOptions strict{.idle_packets_per_second = 50, .idle_packets_burst = 100};
    QuicPair pair({.server = strict});
    std::vector<std::byte> seen;
    pair.net.tap = [&](Datagram& datagram) {
        const bool is_short = (datagram.bytes[0] & std::byte{0x80}) == std::byte{0};
        if (is_short && datagram.to == pair.server_side.host().address()) seen = datagram.bytes;
        return true;
    };
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(100ms);
    ASSERT_GE(seen.size(), 9U);
    // Anyone who sees a packet knows the connection id, but has no keys.
    for (std::uint64_t i = 0; i < 1000; ++i) {
        auto forged = pattern(i, 60);
        std::copy_n(seen.begin(), 9, forged.begin());
        pair.net.inject({.from = pair.client_side.host().address(),
                         .to = pair.server_side.host().address(),
                         .bytes = std::move(forged)},
                        i * 10us);
    }
    pair.world.run_for(1s);
    EXPECT_TRUE(pair.server().is_up()) << pair.server().down()->what();
}

TEST(Flood, replayed_packets_do_not_make_us_cut_off_an_honest_member) {
    const LinkOptions strict{.idle_packets_per_second = 50, .idle_packets_burst = 100};
    QuicPair pair({.server = strict});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(100ms);
    std::vector<std::byte> seen;
    pair.net.tap = [&](Datagram& datagram) {
        if (datagram.to == pair.server_side.host().address()) seen = datagram.bytes;
        return true;
    };
    pair.client().send(pattern(1, 100));
    pair.world.run_for(100ms);
    ASSERT_FALSE(seen.empty());
    for (std::uint64_t i = 0; i < 1000; ++i) {
        pair.net.inject({.from = pair.client_side.host().address(),
                         .to = pair.server_side.host().address(),
                         .bytes = seen},
                        i * 10us);
    }
    pair.world.run_for(1s);
    EXPECT_TRUE(pair.server().is_up()) << pair.server().down()->what();
}

TEST(Flood, answers_to_bulk_with_losses_do_not_count_as_a_flood) {
    const LinkOptions strict{.idle_packets_per_second = 50, .idle_packets_burst = 100};
    QuicPair pair({.client = strict, .weather = {.delay = 1ms, .loss = 0.03, .mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 5'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 60s));
    EXPECT_TRUE(pair.client().is_up()) << pair.client().down()->what();
}

}  // namespace
}  // namespace nexar::quic
