#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nexar/error.hpp>
#include <vector>

#include "relay_load.hpp"
#include "support/network_namespace.hpp"

namespace nexar::bench {
namespace {

double percentile_99(std::vector<double> times) {
    std::ranges::sort(times);
    return times.at(times.size() * 99 / 100);
}

TEST(RelayLoad, a_saturated_tunnel_leaves_half_of_the_link_and_small_messages_to_the_relay) {
    if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
    // A rate at which the link is the limit, and not the processors of a small machine.
    const RelayLoadOptions options{.rate = "200mbit", .seconds = 1.5, .alone = false};
    RelayLoad load;
    try {
        load = measure_relay_load(options);
    } catch (const Error& error) {
        if (error.code() != Errc::unsupported) throw;
        GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
    }
    const double share = load.own / (load.own + load.relayed);
    ASSERT_GT(load.own_round_trips.size(), 20U);
    ASSERT_GT(load.relayed_round_trips.size(), 5U);
    std::printf("own %.1f MB/s, tunnel %.1f MB/s, p99 of small messages %.1f ms and %.1f ms\n",
                load.own / 1e6, load.relayed / 1e6, percentile_99(load.own_round_trips),
                percentile_99(load.relayed_round_trips));
    EXPECT_GT(load.own + load.relayed, 12e6) << "the link was not saturated";
    EXPECT_GE(share, 0.45);
    EXPECT_LE(percentile_99(load.own_round_trips), 50);
}

}  // namespace
}  // namespace nexar::bench
