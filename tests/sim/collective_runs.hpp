#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "cluster.hpp"
#include "collective_traffic.hpp"

namespace nexar::testing {

/// Every other seed has a low limit, so that payloads that would fit the lane travel on streams.
inline std::uint64_t eager_bytes_of(std::uint64_t seed) {
    return seed % 2 == 0 ? 2048 : schedule::Profile{}.eager_bytes;
}

/// Lanes and streams overtake each other and arrive in pieces of any size.
inline void worsen_weather(SimCluster& cluster, Random& random) {
    sim::LinkWeather weather;
    weather.delay = Duration(random.below(2'000'000));
    weather.jitter = Duration(random.below(5'000'000));
    weather.largest_piece = 500 + random.below(random.chance(0.5) ? 3'000 : 70'000);
    weather.cuts = random.chance(0.5) ? 0.5 : 0;
    cluster.fabric().set_weather(weather);
}

/// Steady packet loss, and a delay so long that much data is in flight unacknowledged.
inline void worsen_weather(QuicCluster& cluster, Random& random) {
    sim::DatagramWeather weather;
    weather.delay = std::chrono::milliseconds(1) + Duration(random.below(4'000'000));
    weather.jitter = Duration(random.below(2'000'000));
    weather.loss = 0.02;
    weather.duplicate = 0.01;
    cluster.net().weather = weather;
}

struct CollectiveRuns {
    std::uint64_t first_seed = 1;
    std::uint64_t seeds = 1;
    std::size_t calls = 1;
    std::size_t largest_count = 20'000;
};

/// Runs random calls with one round of algorithms on 1 to 8 nodes, placed on hosts at random. Some
/// ranks run far ahead of the others.
template <class Cluster>
void run_random_calls(std::uint64_t seed, const CollectiveRuns& runs) {
    const std::size_t world = 1 + seed % 8;
    Cluster cluster(seed, world);
    CollectiveTraffic traffic(cluster, seed);
    Random& random = traffic.random();
    const schedule::Links links = random_hosts(random, world);
    const ForcedRounds rounds(world, links);
    const std::size_t round = random.below(rounds.size());
    traffic.set_profile({.links = links,
                         .forced = rounds.forced(round),
                         .segment_bytes = random.chance(0.5) ? 0 : 64 + random.below(20'000),
                         .eager_bytes = eager_bytes_of(seed / 8)});
    ASSERT_TRUE(cluster.connect());
    worsen_weather(cluster, random);
    for (std::size_t i = 0; i < runs.calls; ++i) {
        traffic.add(random_call(random, rounds.algorithms(round), world, runs.largest_count));
    }
    traffic.start_all();
    ASSERT_TRUE(traffic.run());
    traffic.expect_success();
    traffic.expect_untouched_and_forget();
    cluster.close();
}

/// Runs all seeds until one fails, and prints its progress every 50 seeds.
template <class Cluster>
void expect_exact_runs(const CollectiveRuns& runs) {
    for (std::uint64_t seed = runs.first_seed; seed < runs.first_seed + runs.seeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ASSERT_NO_FATAL_FAILURE(run_random_calls<Cluster>(seed, runs));
        ASSERT_FALSE(::testing::Test::HasFailure());
        if (seed % 50 == 0) std::cout << "seeds up to " << seed << " are clean\n" << std::flush;
    }
}

}  // namespace nexar::testing
