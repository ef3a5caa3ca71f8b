#include "link/quic/endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/quic_pair.hpp"

// Many connections over one packet path, and answers to packets of unknown connections.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::Datagram;
using nexar::sim::DatagramHost;
using nexar::sim::DatagramNet;
using nexar::sim::World;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::Side;
using port::Lane;
using ::testing::HasSubstr;

Secret secret_of(std::uint64_t seed) {
    return Secret(pattern(seed, 32));
}

bool is_long(const Datagram& datagram) {
    return (datagram.bytes[0] & std::byte{0x80}) != std::byte{0};
}
/// The type of a long header, RFC 9000 17.2: 0 Initial, 2 Handshake, 3 Retry.
unsigned long_type(const Datagram& datagram) {
    return (std::to_integer<unsigned>(datagram.bytes[0]) >> 4U) & 3U;
}

TEST(Endpoint, serves_many_peers_and_keeps_them_apart) {
    World world(1);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    Side server(net.add_host(DatagramNet::address(1), QuicPair::endpoint_options(cluster.node(1))));
    std::vector<std::unique_ptr<Side>> clients;
    std::vector<LinkEnd*> ends;
    for (unsigned i = 0; i < 20; ++i) {
        clients.push_back(std::make_unique<Side>(net.add_host(
            DatagramNet::address(10 + i), QuicPair::endpoint_options(cluster.node(10 + i)))));
        // Two links each, because addresses do not identify connections.
        for (int twice = 0; twice < 2; ++twice) {
            ends.push_back(&clients.back()->dial(server.host().address(),
                                                 {.cluster = cluster.id(), .node = {}}));
        }
    }
    ASSERT_TRUE(world.run_until(
        [&] { return std::ranges::all_of(ends, [](LinkEnd* end) { return end->is_up(); }); }, 5s));
    ASSERT_EQ(server.accepted_count(), 40U);
    for (std::size_t i = 0; i < 40; ++i) ends[i]->send(pattern(i, 20'000 + i));
    ASSERT_TRUE(world.run_until(
        [&] { return std::ranges::all_of(ends, [](LinkEnd* end) { return end->all_released(); }); },
        5s));
    std::size_t right = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        LinkEnd& end = server.accepted(i);
        const auto& got = end.incoming(0).sink.bytes;
        const std::size_t sender = got.size() - 20'000;
        EXPECT_EQ(got, pattern(sender, got.size()));
        if (end.link().peer() == cluster.identity(10 + sender / 2)) ++right;
    }
    EXPECT_EQ(right, 40U);
    EXPECT_EQ(server.endpoint().connections(), 40U);
    for (LinkEnd* end : ends) end->link().close("enough");
    world.run_for(10s);
    EXPECT_EQ(server.endpoint().connections(), 0U);
}

TEST(Endpoint, a_restart_with_the_same_secret_is_noticed_at_once) {
    World world(1);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    const auto options = [&] {
        auto made = QuicPair::endpoint_options(cluster.node(2));
        made.secret = secret_of(9);
        return made;
    };
    Side client(net.add_host(DatagramNet::address(1), QuicPair::endpoint_options(cluster.node(1))));
    auto server = std::make_unique<Side>(net.add_host(DatagramNet::address(2), options()));
    LinkEnd& end = client.dial(server->host().address(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(world.run_until([&] { return end.is_up(); }, 1s));
    world.run_for(1s);
    DatagramHost& host = server->host();
    host.restart(options());
    server = std::make_unique<Side>(host);
    const auto stream = end.send(pattern(1, 1000));
    const TimePoint before = world.now();
    ASSERT_TRUE(world.run_until([&] { return end.down().has_value(); }, 60s));
    EXPECT_LT(world.now() - before, 10ms);
    EXPECT_EQ(end.down()->code(), Errc::link_closed);
    EXPECT_THAT(end.down()->cause(), HasSubstr("restarted"));
    EXPECT_EQ(end.outcome(stream), port::SendOutcome::link_lost);
    EXPECT_EQ(host.endpoint().counts().resets_sent, 1U);
}

TEST(Endpoint, a_restart_with_another_secret_is_noticed_after_the_idle_timeout) {
    World world(1);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    const auto options = [&](std::uint64_t seed) {
        auto made = QuicPair::endpoint_options(cluster.node(2));
        made.secret = secret_of(seed);
        return made;
    };
    Side client(net.add_host(DatagramNet::address(1),
                             QuicPair::endpoint_options(cluster.node(1), {.idle_timeout = 4s})));
    auto server = std::make_unique<Side>(net.add_host(DatagramNet::address(2), options(1)));
    LinkEnd& end = client.dial(server->host().address(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(world.run_until([&] { return end.is_up(); }, 1s));
    DatagramHost& host = server->host();
    host.restart(options(2));
    server = std::make_unique<Side>(host);
    end.send(pattern(1, 1000));
    const TimePoint before = world.now();
    ASSERT_TRUE(world.run_until([&] { return end.down().has_value(); }, 60s));
    EXPECT_GT(world.now() - before, 3s) << "a reset with a token of another secret must be ignored";
    EXPECT_EQ(end.down()->code(), Errc::timed_out);
}

TEST(Endpoint, two_endpoints_do_not_answer_resets_of_each_other_forever) {
    QuicPair pair;
    // A short header of an unknown connection, from the address of one endpoint to the other.
    auto junk = pattern(3, 1200);
    junk[0] = std::byte{0x41};
    pair.net.inject({.from = pair.client_side.host().address(),
                     .to = pair.server_side.host().address(),
                     .bytes = junk},
                    1ms);
    pair.world.run_for(10s);
    EXPECT_GE(pair.server_side.endpoint().counts().resets_sent, 1U);
    EXPECT_LE(pair.net.datagrams_sent(), 25U)
        << "each answer is shorter than the packet it answers";
    EXPECT_EQ(pair.net.in_flight(), 0U);
}

TEST(Endpoint, answers_an_unknown_version_with_the_supported_ones) {
    QuicPair pair;
    std::vector<Datagram> answers;
    pair.net.tap = [&](Datagram& datagram) {
        if (datagram.to == pair.client_side.host().address()) answers.push_back(datagram);
        return true;
    };
    auto hello = pattern(4, 1200);
    hello[0] = std::byte{0xc0};
    hello[1] = hello[2] = hello[3] = hello[4] = std::byte{0x5a};
    hello[5] = std::byte{8};   // length of the destination's id
    hello[14] = std::byte{5};  // of the source's
    pair.net.inject({.from = pair.client_side.host().address(),
                     .to = pair.server_side.host().address(),
                     .bytes = hello},
                    0s);
    pair.world.run_for(1s);
    ASSERT_EQ(answers.size(), 1U);
    const auto& answer = answers[0].bytes;
    EXPECT_EQ(pair.server_side.endpoint().counts().version_answers, 1U);
    // RFC 9000 17.2.1: version 0, both ids swapped, then the list.
    EXPECT_TRUE(std::ranges::all_of(std::span(answer).subspan(1, 4),
                                    [](std::byte b) { return b == std::byte{0}; }));
    ASSERT_EQ(answer.size(), 1U + 4 + 1 + 5 + 1 + 8 + 4);
    EXPECT_TRUE(std::equal(answer.begin() + 6, answer.begin() + 11, hello.begin() + 15));
    EXPECT_TRUE(std::equal(answer.begin() + 12, answer.begin() + 20, hello.begin() + 6));
    EXPECT_EQ(answer.back(), std::byte{1});
    EXPECT_EQ(pair.server_side.endpoint().connections(), 0U);
}

TEST(Endpoint, a_dialer_learns_that_the_other_side_speaks_another_version) {
    QuicPair pair;
    pair.net.tap = [&](Datagram& datagram) {
        const auto& hello = datagram.bytes;
        // RFC 9000 17.2.1, with both ids swapped and an unknown version.
        const std::size_t to = std::to_integer<std::size_t>(hello[5]);
        const std::size_t from = std::to_integer<std::size_t>(hello[6 + to]);
        std::vector<std::byte> answer(5);
        answer[0] = std::byte{0x80};
        const auto add = [&](std::size_t at, std::size_t size) {
            answer.insert(answer.end(), hello.begin() + static_cast<std::ptrdiff_t>(at),
                          hello.begin() + static_cast<std::ptrdiff_t>(at + size));
        };
        add(6 + to, 1 + from);
        add(5, 1 + to);
        answer.insert(answer.end(), 4, std::byte{0x5a});
        pair.net.inject({.from = datagram.to, .to = datagram.from, .bytes = answer}, 1ms);
        return false;
    };
    LinkEnd& client = pair.dial();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 1s));
    EXPECT_FALSE(client.was_up());
    EXPECT_EQ(client.down()->code(), Errc::version_mismatch);
    EXPECT_THAT(client.down()->cause(), HasSubstr("10.0.0.2:7400"));
}

TEST(Endpoint, a_restart_of_the_dialer_is_noticed_only_by_the_idle_timeout) {
    // RFC 9000 gives a client no way to tell the reset token of the id that it began with.
    World world(1);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    const auto options = [&] {
        auto made = QuicPair::endpoint_options(cluster.node(1));
        made.secret = secret_of(9);
        return made;
    };
    auto client = std::make_unique<Side>(net.add_host(DatagramNet::address(1), options()));
    Side server(net.add_host(DatagramNet::address(2),
                             QuicPair::endpoint_options(cluster.node(2), {.idle_timeout = 4s})));
    LinkEnd& end = client->dial(server.host().address(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(world.run_until([&] { return end.is_up(); }, 1s));
    world.run_for(1s);
    DatagramHost& host = client->host();
    host.restart(options());
    client = std::make_unique<Side>(host);
    server.accepted().send(pattern(1, 1000));
    const TimePoint before = world.now();
    ASSERT_TRUE(world.run_until([&] { return server.accepted().down().has_value(); }, 60s));
    EXPECT_EQ(server.accepted().down()->code(), Errc::timed_out);
    EXPECT_GT(world.now() - before, 3s);
}

TEST(Endpoint, junk_packets_leave_no_connections_behind) {
    QuicPair pair;
    for (std::uint64_t i = 0; i < 2000; ++i) {
        auto junk = pattern(i, 1 + i);
        junk[0] |= std::byte{0x80};
        if (i % 2 == 0 && junk.size() > 5) {
            junk[1] = junk[2] = junk[3] = std::byte{0};
            junk[4] = std::byte{1};
        }
        pair.net.inject({.from = DatagramNet::address(9),
                         .to = pair.server_side.host().address(),
                         .bytes = std::move(junk)},
                        0s);
    }
    pair.world.run_for(10s);
    const EndpointCounts& counts = pair.server_side.endpoint().counts();
    EXPECT_EQ(counts.packets_in, 2000U);
    EXPECT_EQ(counts.malformed + counts.version_answers + counts.dropped + counts.accepted +
                  counts.retries,
              2000U);
    EXPECT_LT(counts.accepted, 10U);
    EXPECT_EQ(pair.server_side.endpoint().connections(), 0U);
    EXPECT_TRUE(pair.connect());
}

TEST(Endpoint, an_endpoint_that_does_not_accept_can_still_dial) {
    World world(1);
    DatagramNet net(world);
    const auto& cluster = QuicPair::cluster();
    auto closed = QuicPair::endpoint_options(cluster.node(1), {.handshake_timeout = 1s});
    closed.accepts = false;
    Side shy(net.add_host(DatagramNet::address(1), std::move(closed)));
    Side other(
        net.add_host(DatagramNet::address(2),
                     QuicPair::endpoint_options(cluster.node(2), {.handshake_timeout = 1s})));
    LinkEnd& refused = other.dial(shy.host().address(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(world.run_until([&] { return refused.down().has_value(); }, 5s));
    EXPECT_EQ(refused.down()->code(), Errc::timed_out);
    LinkEnd& made = shy.dial(other.host().address(), {.cluster = cluster.id(), .node = {}});
    EXPECT_TRUE(world.run_until([&] { return made.is_up(); }, 1s));
}

TEST(Endpoint, asks_for_proof_of_the_address_when_it_is_busy) {
    QuicPair pair({.gate = {.half_open_before_retry = 0}});
    std::size_t retries = 0;
    pair.net.tap = [&](Datagram& datagram) {
        if (is_long(datagram) && long_type(datagram) == 3) ++retries;
        return true;
    };
    ASSERT_TRUE(pair.connect());
    EXPECT_EQ(retries, 1U);
    EXPECT_EQ(pair.server_side.endpoint().counts().retries, 1U);
    EXPECT_EQ(pair.server_side.endpoint().counts().accepted, 1U);
    pair.client().send(pattern(1, 100'000));
    EXPECT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
}

TEST(Endpoint, a_proof_of_another_address_is_rejected) {
    QuicPair pair({.gate = {.half_open_before_retry = 0}});
    pair.net.tap = [&](Datagram& datagram) {
        const bool answered = pair.server_side.endpoint().counts().retries != 0;
        // The answer to the Retry seems to come from another address.
        if (answered && datagram.from == pair.client_side.host().address()) {
            datagram.from = DatagramNet::address(50);
        }
        return true;
    };
    pair.dial();
    pair.world.run_for(1s);
    EXPECT_GE(pair.server_side.endpoint().counts().bad_tokens, 1U);
    EXPECT_EQ(pair.server_side.endpoint().counts().accepted, 0U);
}

class Amplification : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Certificates, Amplification, ::testing::Bool(),
                         [](const auto& large) { return large.param ? "large" : "small"; });

TEST_P(Amplification, a_server_sends_at_most_three_times_what_an_unproven_client_sent) {
    PairOptions options;
    if (GetParam()) {
        auto key = security::KeyPair::generate().value();
        auto spec = QuicPair::cluster().node_spec(2, key);
        spec.uris.push_back("https://" + std::string(6000, 'x'));
        options.server_credentials = QuicPair::cluster().showing(std::move(spec), std::move(key));
    }
    QuicPair pair(options);
    std::size_t received = 0;
    std::size_t sent = 0;
    pair.net.tap = [&](Datagram& datagram) {
        if (datagram.to == pair.client_side.host().address()) {
            sent += datagram.bytes.size();
            return false;
        }
        if (received != 0) return false;  // a forged source sends only the first packet
        received += datagram.bytes.size();
        return true;
    };
    pair.dial();
    pair.world.run_for(30s);
    EXPECT_GE(received, 1200U);
    EXPECT_GE(sent, 1200U);
    EXPECT_LE(sent, 3 * received);
    EXPECT_EQ(pair.server_side.endpoint().connections(), 0U);
}

TEST(Endpoint, a_blocked_path_loses_nothing) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    Random random(3);
    const auto content = pattern(1, 3'000'000);
    pair.client().send(content);
    for (int i = 0; i < 2000 && !pair.client().all_released(); ++i) {
        pair.client_side.host().blocked = random.chance(0.5);
        pair.server_side.host().blocked = random.chance(0.3);
        pair.world.run_for(Duration(static_cast<std::int64_t>(random.below(100'000))));
    }
    EXPECT_TRUE(pair.client().all_released());
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
}

}  // namespace
}  // namespace nexar::quic
