#include "process/join/flood_scenarios.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <nexar/nexar.hpp>

#include "process/quic/half_open_flood.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostGrowth = std::size_t{16} << 20U;

std::string hear(const ChildProcess& child) {
    return child.channel().hear(patience(seconds(60))).value_or("(nothing)");
}

void serve(const Channel& channel, int world, int rounds) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = world;
    Seed seed(options);
    channel.say(seed.create_token({.uses = world * rounds}));
    channel.say(seed.addresses().front());
    static_cast<void>(channel.hear(std::chrono::minutes(5)));
    channel.say(seed.status());
}

/// Joins `world` nodes at once; returns after how many milliseconds the last one had joined.
void join_all(const Channel& channel, const std::string& join_string, int world) {
    const SteadyClock clock;
    const TimePoint start = clock.now();
    std::vector<std::future<Node>> joins;
    for (int i = 0; i < world; ++i) {
        joins.push_back(std::async(std::launch::async, [&] {
            JoinOptions options;
            options.join_string = join_string;
            return join(options);
        }));
    }
    std::vector<Node> nodes;
    for (auto& joining : joins) nodes.push_back(joining.get());
    channel.say(std::to_string((clock.now() - start) / milliseconds(1)));
    static_cast<void>(channel.hear(std::chrono::minutes(5)));
}

}  // namespace

void nodes_join_during_a_flood(const JoinFloodCase& scenario) {
    ChildProcess seed(
        [&](const Channel& channel) { serve(channel, scenario.world, scenario.rounds); });
    const std::string join_string = hear(seed);
    const Address address = Address::parse(hear(seed)).value();
    const std::size_t before = seed.resident_bytes();
    ChildProcess flood([&](const Channel& channel) {
        HalfOpenFlood(address, Address::parse(scenario.from).value())
            .run(scenario.per_second, scenario.warm_up, channel);
    });
    ASSERT_EQ(hear(flood), "flooding");
    std::size_t growth = 0;
    for (int round = 0; round < scenario.rounds; ++round) {
        ChildProcess nodes(
            [&](const Channel& channel) { join_all(channel, join_string, scenario.world); });
        const TimePoint give_up = SteadyClock{}.now() + patience(seconds(60));
        std::optional<std::string> took;
        while (!took && SteadyClock{}.now() < give_up) {
            took = nodes.channel().hear(milliseconds(20));
            const std::size_t now = seed.resident_bytes();
            growth = std::max(growth, now - std::min(before, now));
        }
        ASSERT_TRUE(took) << "the nodes did not join";
        fmt::print("all {} nodes joined after {} ms\n", scenario.world, *took);
        EXPECT_LE(std::stol(*took), patience(seconds(5)) / milliseconds(1)) << *took;
        nodes.channel().say("leave");
        nodes.wait();
    }
    flood.channel().say("stop");
    fmt::print("{} handshakes begun, the seed grew by {} KiB\n", hear(flood), growth / 1024);
    // Sanitizers keep freed memory, so the bound does not apply to them.
    if (!kSanitized) {
        EXPECT_LE(growth, kMostGrowth);
    }
}

}  // namespace nexar::testing
