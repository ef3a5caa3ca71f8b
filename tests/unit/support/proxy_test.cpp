#include "support/udp_fault/proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proxied_hosts.hpp"
#include "support/seed.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Proxy, forwards_both_ways_over_each_combination_of_families) {
    for (const Address& front : {Address::loopback_v4(), Address::loopback_v6()}) {
        for (const Address& back : {Address::loopback_v4(), Address::loopback_v6()}) {
            UdpHost server(back);
            UdpHost client(front);
            ProxyOptions options;
            options.listen = front;
            const Proxy proxy = started(server, options);
            expect_round_trip(client, proxy, server);
            EXPECT_EQ(proxy.traffic(Direction::to_target).delivered, 1U);
            EXPECT_EQ(proxy.traffic(Direction::to_client).delivered, 1U);
        }
    }
}

TEST(Proxy, forwards_datagrams_of_every_size_unchanged) {
    UdpHost server;
    UdpHost client;
    const Proxy proxy = started(server);
    for (const std::size_t size : {0U, 1U, 1200U, 1452U, 8952U, 65507U}) {
        client.send(proxy.address(), letters(size, size));
        const auto up = server.receive();
        ASSERT_TRUE(up.has_value()) << size;
        EXPECT_EQ(up->text, letters(size, size));
        server.send(up->from, letters(size, size + 1));
        EXPECT_EQ(client.receive_text(), letters(size, size + 1));
    }
}

TEST(Proxy, keeps_the_ecn_bits_both_ways) {
    for (const Address& side : {Address::loopback_v4(), Address::loopback_v6()}) {
        UdpHost server(side);
        UdpHost client(side);
        ProxyOptions options;
        options.listen = side;
        const Proxy proxy = started(server, options);
        for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
            client.send(proxy.address(), "marked", ecn);
            const auto up = server.receive();
            ASSERT_TRUE(up.has_value());
            EXPECT_EQ(up->ecn, ecn);
            server.send(up->from, "marked", static_cast<std::uint8_t>(3 - ecn));
            const auto down = client.receive();
            ASSERT_TRUE(down.has_value());
            EXPECT_EQ(down->ecn, 3 - ecn);
        }
    }
}

TEST(Proxy, forwards_the_segments_of_a_sender_that_uses_udp_segmentation) {
    UdpHost server;
    UdpHost client;
    const Proxy proxy = started(server);
    constexpr int kSegment = 1000;
    if (::setsockopt(client.descriptor(), SOL_UDP, UDP_SEGMENT, &kSegment, sizeof kSegment) != 0) {
        GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
    }
    const std::string whole = letters(9500, 3);
    client.send(proxy.address(), whole);
    for (std::size_t at = 0; at < whole.size(); at += kSegment) {
        EXPECT_EQ(server.receive_text(), whole.substr(at, kSegment));
    }
}

TEST(Proxy, gives_each_client_a_source_port_and_its_own_answers) {
    UdpHost server;
    const Proxy proxy = started(server);
    std::vector<UdpHost> clients(20);
    std::set<std::string> sources;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i].send(proxy.address(), "from " + std::to_string(i));
        const auto up = server.receive();
        ASSERT_TRUE(up.has_value());
        EXPECT_EQ(up->text, "from " + std::to_string(i));
        EXPECT_TRUE(sources.insert(describe(up->from)).second);
        server.send(up->from, "to " + std::to_string(i));
    }
    for (std::size_t i = clients.size(); i-- > 0;) {
        EXPECT_EQ(clients[i].receive_text(), "to " + std::to_string(i));
    }
}

TEST(Proxy, replaces_the_client_idle_longest_when_full) {
    UdpHost server;
    std::vector<UdpHost> clients(3);
    ProxyOptions options;
    options.max_clients = 2;
    const Proxy proxy = started(server, options);
    std::vector<Address> sources;
    for (const std::size_t i : {0U, 1U, 0U, 2U}) {
        clients[i].send(proxy.address(), "hello");
        const auto up = server.receive();
        ASSERT_TRUE(up.has_value());
        sources.push_back(up->from);
    }
    EXPECT_EQ(sources[2], sources[0]);
    server.send(sources[0], "still here");
    EXPECT_EQ(clients[0].receive_text(), "still here");
    server.send(sources[3], "new");
    EXPECT_EQ(clients[2].receive_text(), "new");
    clients[1].send(proxy.address(), "again");
    const auto again = server.receive();
    ASSERT_TRUE(again.has_value());
    EXPECT_NE(again->from, sources[1]);
}

// The seed determines what the target receives, regardless of traffic in the other direction.
TEST(Proxy, loses_the_datagrams_that_the_seed_selects) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.seed = test_seed(1);
    options.to_target.drop.probability = 0.3;
    options.to_client.drop.probability = 0.4;
    const Proxy proxy = started(server, options);
    Random random(options.seed);
    FateSequence up(options.to_target, random.fork());
    FateSequence down(options.to_client, random.fork());
    Address source;
    for (int i = 0; i < 1000; ++i) {
        const std::string text = letters(40, static_cast<std::size_t>(i)) + std::to_string(i);
        client.send(proxy.address(), text);
        if (!up.next(text.size()).dropped) {
            const auto got = server.receive();
            ASSERT_TRUE(got.has_value());
            ASSERT_EQ(got->text, text);
            source = got->from;
        }
        if (source.length == 0 || i % 3 == 0) continue;
        server.send(source, text);
        if (!down.next(text.size()).dropped) {
            ASSERT_EQ(client.receive_text(), text);
        }
    }
    EXPECT_GT(proxy.traffic(Direction::to_target).dropped, 0U);
    EXPECT_GT(proxy.traffic(Direction::to_client).dropped, 0U);
    EXPECT_EQ(proxy.seed(), options.seed);
}

TEST(Proxy, never_delivers_before_the_delay) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.to_target.delay = 2ms;
    options.to_client.delay = 3ms;
    const Proxy proxy = started(server, options);
    for (int i = 0; i < 20; ++i) {
        const TimePoint sent = SteadyClock().now();
        expect_round_trip(client, proxy, server);
        EXPECT_GE(SteadyClock().now() - sent, 5ms);
    }
}

TEST(Proxy, serves_a_target_that_starts_late) {
    auto early = std::make_unique<UdpHost>();
    const Address place = early->address();
    UdpHost client;
    const Proxy proxy = started(*early);
    early.reset();
    // Each of these triggers "port unreachable", which must not cost a later datagram.
    for (std::uint64_t i = 1; i <= 5; ++i) {
        client.send(proxy.address(), "too early");
        while (proxy.traffic(Direction::to_target).delivered < i) std::this_thread::yield();
    }
    UdpHost late(place);
    expect_round_trip(client, proxy, late);
}

TEST(Proxy, explains_why_it_cannot_start) {
    UdpHost taken;
    const auto refusal = [&taken](auto change) {
        ProxyOptions options;
        options.target = taken.address();
        change(options);
        const auto proxy = Proxy::start(options);
        return proxy ? std::string("started") : proxy.error().cause();
    };
    EXPECT_THAT(refusal([&](ProxyOptions& o) { o.listen = taken.address(); }),
                HasSubstr("cannot bind UDP " + describe(taken.address())));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.target = {}; }),
                HasSubstr("cannot send to the target (no address)"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.target = Address::loopback_v4(); }),
                HasSubstr("port from 1 to 65535"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.to_client.duplicate = -1; }),
                HasSubstr("to_client: duplicate is -1"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.max_clients = 0; }), HasSubstr("max_clients"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.rebind.every = -1s; }),
                HasSubstr("rebind.every is -1000000000 ns"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.rebind.addresses = {Address::loopback_v6()}; }),
                HasSubstr("[::1]:0, which cannot reach the target"));
    // TEST-NET-1 (RFC 5737): nobody has this address.
    EXPECT_THAT(
        refusal([](ProxyOptions& o) { o.rebind.addresses = {*Address::parse("192.0.2.1:0")}; }),
        HasSubstr("cannot bind UDP 192.0.2.1:0"));
}

}  // namespace
}  // namespace nexar::udp_fault
