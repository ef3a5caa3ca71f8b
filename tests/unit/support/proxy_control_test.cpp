// Control of a running proxy: new faults, blackholes, rebinding, turns, shutdown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxied_hosts.hpp"
#include "support/udp_fault/proxy.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Proxy, accepts_new_faults_while_running) {
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

TEST(Proxy, a_manual_blackhole_affects_one_direction_only) {
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

TEST(Proxy, rebinding_changes_the_port_and_discards_datagrams_to_the_old_one) {
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

TEST(Proxy, rebinding_cycles_through_the_addresses) {
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

TEST(Proxy, rebinds_automatically_after_a_delay_and_then_periodically) {
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
        // The second port is due at 20 ms, the third at 50 ms, the fourth at 80 ms.
        const auto rebindings = static_cast<int>(sources.size()) - 1;
        EXPECT_GE(SteadyClock().now() - begin, rebindings == 0 ? 0ms : rebindings * 30ms - 10ms);
    }
}

TEST(Proxy, stops_at_once_even_with_datagrams_in_flight) {
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

TEST(Proxy, can_be_controlled_by_other_threads_under_load) {
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

TEST(OpenProxy, runs_only_in_its_turns_and_sleeps_in_between) {
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

TEST(OpenProxy, counts_datagrams_dropped_by_the_kernel) {
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
