#include "support/udp_fault/proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <atomic>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/seed.hpp"
#include "udp_host.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// `size` letters that differ by place and by `salt`.
std::string letters(std::size_t size, std::size_t salt) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('!' + (i * 31 + salt) % 90);
    return text;
}

Proxy started(const UdpHost& target, ProxyOptions options = {}) {
    options.target = target.address();
    auto proxy = Proxy::start(options);
    if (!proxy) throw Error(proxy.error());
    return std::move(*proxy);
}

void expect_round_trip(UdpHost& client, const Proxy& proxy, UdpHost& server) {
    client.send(proxy.address(), "ping");
    const auto ping = server.receive();
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->text, "ping");
    server.send(ping->from, "pong");
    const auto pong = client.receive();
    ASSERT_TRUE(pong.has_value());
    EXPECT_EQ(pong->text, "pong");
    EXPECT_EQ(pong->from, proxy.address());
}

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

TEST(Proxy, forwards_datagrams_of_every_size_whole) {
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

TEST(Proxy, forwards_the_segments_of_a_sender_that_leaves_cutting_to_the_kernel) {
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

TEST(Proxy, when_full_serves_a_new_client_instead_of_the_one_silent_longest) {
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

// The target sees what the seed decides, whatever runs in the other direction meanwhile.
TEST(Proxy, loses_what_the_seed_says) {
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

TEST(Proxy, delivers_never_before_the_delay) {
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

TEST(Proxy, takes_new_faults_while_it_runs) {
    UdpHost server;
    UdpHost client;
    Proxy proxy = started(server);
    expect_round_trip(client, proxy, server);
    FaultOptions lossy;
    lossy.drop.probability = 1;
    ASSERT_TRUE(proxy.set_faults(Direction::to_target, lossy).has_value());
    client.send(proxy.address(), "lost");
    while (proxy.traffic(Direction::to_target).dropped == 0) std::this_thread::yield();
    FaultOptions twice;
    twice.duplicate = 1;
    ASSERT_TRUE(proxy.set_faults(Direction::to_target, twice).has_value());
    client.send(proxy.address(), "found");
    EXPECT_EQ(server.receive_text(), "found");
    EXPECT_EQ(server.receive_text(), "found");
    FaultOptions wrong;
    wrong.drop.probability = 7;
    const auto refused = proxy.set_faults(Direction::to_target, wrong);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().cause(), HasSubstr("drop.probability is 7"));
    client.send(proxy.address(), "as before");
    EXPECT_EQ(server.receive_text(), "as before");
    EXPECT_EQ(server.receive_text(), "as before");
}

TEST(Proxy, a_blackhole_on_demand_swallows_one_direction_only) {
    UdpHost server;
    UdpHost client;
    Proxy proxy = started(server);
    client.send(proxy.address(), "first");
    const auto first = server.receive();
    ASSERT_TRUE(first.has_value());
    proxy.blackhole(Direction::to_target, true);
    client.send(proxy.address(), "swallowed");
    server.send(first->from, "passes");
    EXPECT_EQ(client.receive_text(), "passes");
    while (proxy.traffic(Direction::to_target).blackholed == 0) std::this_thread::yield();
    proxy.blackhole(Direction::to_target, false);
    proxy.blackhole(Direction::to_client, true);
    client.send(proxy.address(), "passes again");
    EXPECT_EQ(server.receive_text(), "passes again");
    server.send(first->from, "swallowed");
    while (proxy.traffic(Direction::to_client).blackholed == 0) std::this_thread::yield();
    proxy.blackhole(Direction::to_client, false);
    expect_round_trip(client, proxy, server);
}

TEST(Proxy, rebinding_changes_the_port_and_discards_what_comes_to_the_old_one) {
    UdpHost server;
    UdpHost client;
    Proxy proxy = started(server);
    client.send(proxy.address(), "before");
    const auto before = server.receive();
    ASSERT_TRUE(before.has_value());
    proxy.rebind();
    server.send(before->from, "to the old port");
    while (proxy.traffic(Direction::to_client).stale == 0) std::this_thread::yield();
    client.send(proxy.address(), "after");
    const auto after = server.receive();
    ASSERT_TRUE(after.has_value());
    EXPECT_EQ(after->text, "after");
    EXPECT_NE(after->from, before->from);
    server.send(after->from, "to the new port");
    EXPECT_EQ(client.receive_text(), "to the new port");
}

TEST(Proxy, rebinding_goes_through_the_addresses_in_turn) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    for (const char* source : {"127.0.0.2:0", "127.8.9.10:0"}) {
        options.rebind.addresses.push_back(*Address::parse(source));
    }
    Proxy proxy = started(server, options);
    std::vector<std::string> sources;
    for (int i = 0; i < 3; ++i) {
        client.send(proxy.address(), "where from");
        const auto got = server.receive();
        ASSERT_TRUE(got.has_value());
        sources.push_back(describe(got->from.with_port(0)));
        proxy.rebind();
    }
    EXPECT_EQ(sources, (std::vector<std::string>{"127.0.0.2:0", "127.8.9.10:0", "127.0.0.2:0"}));
}

TEST(Proxy, rebinds_on_its_own_after_a_time_and_then_with_a_period) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.rebind.after = 20ms;
    options.rebind.every = 30ms;
    const Proxy proxy = started(server, options);
    const TimePoint begin = SteadyClock().now();
    std::set<std::string> sources;
    while (sources.size() < 4) {
        client.send(proxy.address(), "where from");
        const auto got = server.receive();
        ASSERT_TRUE(got.has_value());
        sources.insert(describe(got->from));
        // The second port comes at 20 ms, the third at 50 ms, the fourth at 80 ms.
        const auto rebindings = static_cast<int>(sources.size()) - 1;
        EXPECT_GE(SteadyClock().now() - begin, rebindings == 0 ? 0ms : rebindings * 30ms - 10ms);
    }
}

TEST(Proxy, serves_a_target_that_comes_late) {
    auto early = std::make_unique<UdpHost>();
    const Address place = early->address();
    UdpHost client;
    const Proxy proxy = started(*early);
    early.reset();
    // Each of these is answered by "port unreachable", which must cost no later datagram.
    for (std::uint64_t i = 1; i <= 5; ++i) {
        client.send(proxy.address(), "too early");
        while (proxy.traffic(Direction::to_target).delivered < i) std::this_thread::yield();
    }
    UdpHost late(place);
    expect_round_trip(client, proxy, late);
}

TEST(Proxy, tells_why_it_cannot_start) {
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
                HasSubstr("the target (no address) is no place to send to"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.target = Address::loopback_v4(); }),
                HasSubstr("port from 1 to 65535"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.to_client.duplicate = -1; }),
                HasSubstr("to_client: duplicate is -1"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.max_clients = 0; }), HasSubstr("max_clients"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.rebind.every = -1s; }),
                HasSubstr("rebind.every is -1000000000 ns"));
    EXPECT_THAT(refusal([](ProxyOptions& o) { o.rebind.addresses = {Address::loopback_v6()}; }),
                HasSubstr("[::1]:0, which cannot reach the target"));
    // TEST-NET-1 (RFC 5737): nobody has it.
    EXPECT_THAT(
        refusal([](ProxyOptions& o) { o.rebind.addresses = {*Address::parse("192.0.2.1:0")}; }),
        HasSubstr("cannot bind UDP 192.0.2.1:0"));
}

TEST(Proxy, stops_at_once_even_with_datagrams_under_way) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.to_target.delay = 1h;
    Proxy proxy = started(server, options);
    client.send(proxy.address(), "never arrives");
    while (proxy.traffic(Direction::to_target).queued == 0) std::this_thread::yield();
    Proxy other = started(server);
    other = std::move(proxy);
    EXPECT_EQ(other.traffic(Direction::to_target).queued, 1U);
}

TEST(Proxy, obeys_other_threads_while_datagrams_pour_in) {
    UdpHost server;
    UdpHost client;
    Proxy proxy = started(server);
    std::atomic<bool> stop{false};
    std::thread flood([&] {
        const std::string text = letters(1200, 1);
        while (!stop) client.send(proxy.address(), text);
    });
    for (int i = 0; i < 50; ++i) {
        FaultOptions options;
        options.drop.probability = i % 2;
        options.delay = i * 1us;
        EXPECT_TRUE(proxy.set_faults(Direction::to_target, options).has_value());
        proxy.blackhole(Direction::to_client, i % 2 == 0);
        if (i % 10 == 0) proxy.rebind();
        const std::uint64_t before = proxy.traffic(Direction::to_target).received;
        while (proxy.traffic(Direction::to_target).received == before) std::this_thread::yield();
    }
    stop = true;
    flood.join();
    EXPECT_GT(proxy.traffic(Direction::to_target).dropped, 0U);
}

double cpu_seconds_of_this_thread() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST(OpenProxy, runs_in_its_turns_only_and_sleeps_between) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.target = server.address();
    options.to_target.delay = 60ms;
    auto proxy = Proxy::open(options);
    ASSERT_TRUE(proxy.has_value());
    client.send(proxy->address(), "by hand");
    EXPECT_EQ(proxy->traffic(Direction::to_target).received, 0U);
    const TimePoint begin = SteadyClock().now();
    const double used_before = cpu_seconds_of_this_thread();
    int turns = 0;
    while (proxy->traffic(Direction::to_target).delivered == 0) {
        proxy->turn(begin + 1h);
        ++turns;
    }
    EXPECT_GE(SteadyClock().now() - begin, 60ms);
    EXPECT_EQ(turns, 2) << "one for the arrival, one for the departure";
    EXPECT_EQ(server.receive_text(), "by hand");
    const TimePoint deadline = SteadyClock().now() + 40ms;
    proxy->turn(deadline);
    EXPECT_GE(SteadyClock().now(), deadline);
    EXPECT_LT(cpu_seconds_of_this_thread() - used_before, 0.05) << "of 0.1 s";
}

TEST(OpenProxy, counts_what_the_kernel_dropped_before_it) {
    UdpHost server;
    UdpHost client;
    ProxyOptions options;
    options.target = server.address();
    auto proxy = Proxy::open(options);
    ASSERT_TRUE(proxy.has_value());
    constexpr std::uint64_t kSent = 30000;
    for (std::uint64_t i = 0; i < kSent; ++i) client.send(proxy->address(), letters(1200, i));
    std::uint64_t received = 1;
    for (std::uint64_t before = 0; before != received;) {
        before = received;
        proxy->turn(SteadyClock().now());
        received = proxy->traffic(Direction::to_target).received;
    }
    const Traffic traffic = proxy->traffic(Direction::to_target);
    EXPECT_GT(traffic.missed, 0U);
    EXPECT_EQ(traffic.received + traffic.missed, kSent);
    EXPECT_THAT(describe(traffic), HasSubstr("missed " + std::to_string(traffic.missed)));
}

TEST(OpenProxyDeathTest, a_started_proxy_takes_no_turns) {
    UdpHost server;
    EXPECT_DEATH(started(server).turn(SteadyClock().now()), "drives itself");
}

}  // namespace
}  // namespace nexar::udp_fault
