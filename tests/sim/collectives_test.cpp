// Collectives of whole clusters are exact with every algorithm in any weather.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "changing_links.hpp"
#include "cluster.hpp"
#include "collective_runs.hpp"
#include "collective_traffic.hpp"
#include "schedule/algorithm.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

constexpr std::uint64_t kSegment = 4096;

/// Adds calls of one algorithm in all variants, with vectors or chunks of `count` elements.
void add_calls(CollectiveTraffic& traffic, const schedule::Algorithm& algorithm, std::size_t world,
               std::size_t count) {
    const bool folds = schedule::reduces(algorithm.operation);
    for (const bool in_place : {false, true}) {
        for (const bool uneven : {false, true}) {
            if (uneven && !algorithm.traits.takes_counts) continue;
            for (const bool floats : {false, true}) {
                if (floats && !folds) continue;
                traffic.add({.what = algorithm.operation,
                             .count = count,
                             .in_place = in_place,
                             .uneven = uneven,
                             .floats = floats,
                             .root = static_cast<std::uint32_t>((count + world / 2) % world),
                             .seed = traffic.random().next()});
            }
        }
    }
}

/// Runs one round of algorithms with all variants of every operation.
template <class Cluster>
void expect_exact(Cluster& cluster, CollectiveTraffic& traffic, const ForcedRounds& rounds,
                  std::size_t round, schedule::Profile profile) {
    profile.forced = rounds.forced(round);
    traffic.set_profile(profile);
    ASSERT_TRUE(cluster.connect());
    worsen_weather(cluster, traffic.random());
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, cluster.size() + 1,
                                    std::size_t{1000}, std::size_t{30'000}}) {
        for (const schedule::Algorithm* algorithm : rounds.algorithms(round)) {
            if (profile.segment_bytes != 0 && !algorithm->traits.segments) continue;
            add_calls(traffic, *algorithm, cluster.size(), count);
        }
        traffic.start_all();
        ASSERT_TRUE(traffic.run());
        traffic.expect_success();
        traffic.expect_untouched_and_forget();
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
    cluster.close();
}

template <class Cluster>
void expect_exact_in_all_rounds(std::uint64_t seed, std::size_t world,
                                const schedule::Links& links) {
    const ForcedRounds rounds(world, links);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
        for (const std::uint64_t segment : {std::uint64_t{0}, kSegment}) {
            SCOPED_TRACE(world);
            Cluster cluster(seed, world);
            CollectiveTraffic traffic(cluster, seed);
            ASSERT_NO_FATAL_FAILURE(expect_exact(
                cluster, traffic, rounds, round,
                {.links = links, .segment_bytes = segment, .eager_bytes = eager_bytes_of(seed)}));
            ++seed;
        }
    }
}

/// The first half of the ranks on one host, the others in turn on two, so that two-level algorithms
/// find hosts of different sizes whose ranks are not neighbours.
schedule::Links uneven_hosts(std::size_t world) {
    std::vector<std::uint32_t> machines;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        machines.push_back(2 * rank < world ? 0 : 1 + rank % 2);
    }
    return schedule::Links(machines);
}

class CollectivesInWorld : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CollectivesInWorld, are_exact_with_every_algorithm) {
    expect_exact_in_all_rounds<SimCluster>(test_seed(1) + GetParam() * 100, GetParam(),
                                           uneven_hosts(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Collectives, CollectivesInWorld,
                         ::testing::Values(1U, 2U, 3U, 4U, 5U, 7U, 8U));

// A retransmission reads the memory of the sender again, so an in-place call must not overwrite
// data before the receiver has acknowledged it.
TEST(Collectives, are_exact_with_every_algorithm_on_quic_with_packet_loss) {
    const std::uint64_t seed = test_seed(1);
    for (const std::size_t world : {2U, 3U, 4U}) {
        ASSERT_NO_FATAL_FAILURE(expect_exact_in_all_rounds<QuicCluster>(seed + world * 100, world,
                                                                        uneven_hosts(world)));
    }
}

TEST(Collectives, are_exact_with_many_pending_calls_on_quic_with_packet_loss) {
    expect_exact_runs<QuicCluster>({.first_seed = test_seed(1), .seeds = 10, .calls = 30});
}

TEST(Collectives, are_exact_with_many_pending_calls) {
    expect_exact_runs<SimCluster>({.first_seed = test_seed(1), .seeds = 20, .calls = 60});
}

TEST(Collectives, are_exact_while_links_come_move_and_break) {
    expect_exact_runs<ChangingLinks>({.first_seed = test_seed(1), .seeds = 20, .calls = 60});
}

}  // namespace
}  // namespace nexar::testing
