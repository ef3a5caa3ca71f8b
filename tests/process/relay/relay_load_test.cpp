#include <gtest/gtest.h>

#include <cstdio>
#include <nexar/error.hpp>

#include "link/timing.hpp"
#include "relay_load.hpp"
#include "support/network_namespace.hpp"

namespace nexar::bench {
namespace {

TEST(RelayLoad,
     a_saturated_tunnel_leaves_the_relay_about_half_of_its_link_and_prompt_small_messages) {
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
    const double own_ms = quantile(load.own_round_trips, 0.99);
    const double relayed_ms = quantile(load.relayed_round_trips, 0.99);
    std::printf("own %.1f MB/s, tunnel %.1f MB/s, p99 of small messages %.1f ms and %.1f ms\n",
                load.own / 1e6, load.relayed / 1e6, own_ms, relayed_ms);
    EXPECT_GT(load.own + load.relayed, 12e6) << "the link was not saturated";
    EXPECT_GE(share, 0.45);
    EXPECT_LE(own_ms, 50);
    EXPECT_LE(relayed_ms, 300) << "its messages share a queue with its own bulk";
}

}  // namespace
}  // namespace nexar::bench
