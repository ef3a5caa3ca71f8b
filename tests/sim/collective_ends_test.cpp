// How collectives of whole clusters end when a rank is lost, cancels or is late.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "cluster.hpp"
#include "collective_runs.hpp"
#include "collective_traffic.hpp"
#include "support/seed.hpp"
#include "unit/base/log_capture.hpp"

namespace nexar::testing {
namespace {

using Op = schedule::Collective;

constexpr std::uint64_t kSeeds = 60;

/// A cluster with randomly chosen algorithms, and the calls that it will make.
struct Scene {
    explicit Scene(std::uint64_t seed, std::size_t nodes)
        : world(nodes), cluster(seed, nodes), traffic(cluster, seed) {
        round = random().below(rounds.size());
        traffic.set_profile({.links = links,
                             .forced = rounds.forced(round),
                             .segment_bytes = random().chance(0.5) ? 0 : kSegment,
                             .eager_bytes = eager_bytes_of(seed)});
    }

    Random& random() noexcept { return traffic.random(); }

    void add_random_calls(std::size_t calls) {
        for (std::size_t i = 0; i < calls; ++i) {
            traffic.add(random_call(random(), rounds.algorithms(round), world, 30'000));
        }
    }

    static constexpr std::uint64_t kSegment = 4096;
    std::size_t world;
    SimCluster cluster;
    CollectiveTraffic traffic;
    schedule::Links links = random_hosts(traffic.random(), world);
    ForcedRounds rounds{world, links};
    std::size_t round = 0;
};

/// Runs `check` on clusters of 2 to 8 nodes.
template <class Check>
void for_seeds(std::uint64_t first, const Check& check) {
    for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Scene scene(seed, 2 + seed % 7);
        ASSERT_TRUE(scene.cluster.connect());
        worsen_weather(scene.cluster, scene.random());
        ASSERT_NO_FATAL_FAILURE(check(scene));
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
}

/// Every rank makes further calls, which earlier failures must not affect.
void expect_next_calls_succeed(Scene& scene) {
    scene.add_random_calls(3);
    scene.traffic.start_all();
    ASSERT_TRUE(scene.traffic.run());
    scene.traffic.expect_success();
    scene.traffic.expect_untouched_and_forget();
}

enum class Loss : std::uint8_t { all_links, one_by_one, silent };

/// Breaks all links of a node at once, or each after some more bytes, or makes them silent.
void lose(Scene& scene, std::size_t victim, Loss how) {
    SimCluster& cluster = scene.cluster;
    sim::Carrier& carrier = cluster.carrier(victim);
    for (std::size_t other = 0; other < scene.world; ++other) {
        if (other == victim) continue;
        sim::Link* const link = carrier.link_to(cluster.member(other));
        if (how == Loss::silent) {
            cluster.fabric().partition(cluster.member(victim), cluster.member(other));
        } else if (link != nullptr && how == Loss::one_by_one) {
            cluster.fabric().break_link_after(carrier, link->id(), scene.random().below(100'000));
        } else if (link != nullptr) {
            cluster.fabric().break_link(carrier, link->id());
        }
    }
}

/// On the remaining ranks each call succeeded or failed because of a link. The error names the lost
/// rank, except when links break one by one: then the lost rank may still report others as lost.
void expect_loss_errors(const Scene& scene, std::size_t victim, Loss how) {
    for (std::size_t call = 0; call < scene.traffic.calls(); ++call) {
        for (std::size_t rank = 0; rank < scene.world; ++rank) {
            const auto& error = rank == victim ? std::nullopt : scene.traffic.error(call, rank);
            if (!error) continue;
            // A stream that ends with its link gives no other reason.
            EXPECT_TRUE(error->code() == Errc::link_closed ||
                        (how == Loss::silent && error->code() == Errc::timed_out))
                << error->what();
            if (how == Loss::one_by_one) continue;
            EXPECT_EQ(error->rank(), static_cast<int>(victim)) << error->what();
        }
    }
}

/// A barrier without the lost rank fails on every other rank.
void expect_barrier_fails(Scene& scene, std::size_t victim) {
    const std::size_t barrier = scene.traffic.add({.what = Op::barrier});
    scene.traffic.start_all_except(victim);
    ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(40)));
    for (std::size_t rank = 0; rank < scene.world; ++rank) {
        if (rank == victim) continue;
        EXPECT_TRUE(scene.traffic.error(barrier, rank)) << "rank " << rank;
    }
}

void expect_calls_end_after(Loss how) {
    const LogCapture log;
    for_seeds(test_seed(1), [&](Scene& scene) {
        Random& random = scene.random();
        const std::size_t victim = random.below(scene.world);
        scene.add_random_calls(1 + random.below(8));
        scene.cluster.world().after(Duration(random.below(40'000'000)),
                                    [&, victim] { lose(scene, victim, how); });
        scene.traffic.start_all();
        scene.cluster.world().run_for(std::chrono::milliseconds(40));
        if (how == Loss::one_by_one) lose(scene, victim, Loss::all_links);
        ASSERT_NO_FATAL_FAILURE(expect_barrier_fails(scene, victim));
        expect_loss_errors(scene, victim, how);
        scene.traffic.expect_untouched_and_forget();
        scene.cluster.close();
    });
}

TEST(CollectiveEnds, calls_end_on_every_rank_when_a_rank_is_lost) {
    expect_calls_end_after(Loss::all_links);
}

TEST(CollectiveEnds, calls_end_on_every_rank_when_links_break_one_by_one) {
    expect_calls_end_after(Loss::one_by_one);
}

TEST(CollectiveEnds, calls_end_on_every_rank_when_a_rank_falls_silent) {
    expect_calls_end_after(Loss::silent);
}

/// No call failed except `call`, and that one because `rank` cancelled it.
void expect_only_cancelled(const Scene& scene, std::size_t call, std::size_t rank) {
    for (std::size_t i = 0; i < scene.traffic.calls(); ++i) {
        for (std::size_t at = 0; at < scene.world; ++at) {
            const auto& error = scene.traffic.error(i, at);
            if (!error) continue;
            EXPECT_EQ(i, call) << error->what();
            EXPECT_EQ(error->code(), Errc::cancelled) << error->what();
            EXPECT_EQ(error->rank(), static_cast<int>(rank)) << error->what();
        }
    }
}

TEST(CollectiveEnds, cancelling_a_call_affects_no_other_call) {
    std::size_t cancelled = 0;
    std::size_t succeeded = 0;
    for_seeds(test_seed(1), [&](Scene& scene) {
        Random& random = scene.random();
        const std::size_t rank = random.below(scene.world);
        scene.add_random_calls(2 + random.below(8));
        const std::size_t call = random.below(scene.traffic.calls());
        scene.cluster.world().after(Duration(random.below(30'000'000)),
                                    [&, call, rank] { scene.traffic.cancel(call, rank); });
        scene.traffic.start_all();
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(60)));
        scene.cluster.world().run_for(std::chrono::milliseconds(30));
        for (std::size_t at = 0; at < scene.world; ++at) {
            ++(scene.traffic.error(call, at) ? cancelled : succeeded);
        }
        expect_only_cancelled(scene, call, rank);
        scene.traffic.expect_untouched_and_forget();
        ASSERT_NO_FATAL_FAILURE(expect_next_calls_succeed(scene));
        scene.cluster.close();
    });
    EXPECT_GT(cancelled, 0U);
    EXPECT_GT(succeeded, 0U);
}

TEST(CollectiveEnds, calls_end_even_if_the_failed_rank_is_lost_before_all_ranks_know) {
    SimCluster cluster(test_seed(1), 4);
    CollectiveTraffic traffic(cluster, 1);
    traffic.set_profile({.forced = "broadcast=chain"});
    ASSERT_TRUE(cluster.connect());
    // Rank 3 waits only for rank 2, and rank 2 only for rank 1. Rank 0 has not made the call.
    traffic.add({.what = Op::broadcast, .count = 100});
    for (const std::size_t rank : {1U, 2U, 3U}) traffic.start_next(rank);
    cluster.world().run_for(std::chrono::milliseconds(50));
    cluster.fabric().partition(cluster.member(1), cluster.member(3));
    traffic.cancel(0, 1);
    cluster.world().run_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(traffic.ended(0, 2));
    ASSERT_FALSE(traffic.ended(0, 3));
    const sim::Link* const link = cluster.carrier(1).link_to(cluster.member(3));
    ASSERT_NE(link, nullptr);
    cluster.fabric().break_link(cluster.carrier(1), link->id());
    ASSERT_TRUE(traffic.run(std::chrono::seconds(5)));
    ASSERT_TRUE(traffic.error(0, 3));
    EXPECT_EQ(traffic.error(0, 3)->code(), Errc::cancelled) << traffic.error(0, 3)->what();
    EXPECT_EQ(traffic.error(0, 3)->rank(), 1) << traffic.error(0, 3)->what();
    traffic.expect_untouched_and_forget();
    cluster.close();
}

void expect_timed_out(const Scene& scene, std::size_t rank, std::size_t late) {
    const auto& error = scene.traffic.error(0, rank);
    ASSERT_TRUE(error) << "rank " << rank;
    EXPECT_EQ(error->code(), Errc::timed_out) << error->what();
    EXPECT_THAT(error->what(),
                ::testing::HasSubstr("for rank " + std::to_string(late) + "; find out why"));
}

TEST(CollectiveEnds, timeout_names_the_late_rank) {
    for_seeds(test_seed(1), [](Scene& scene) {
        // In a small world one window covers all ranks, so each waits for the late one directly.
        if (scene.world > 5) return scene.cluster.close();
        scene.traffic.set_profile({.forced = "all_to_all=windowed"});
        const std::size_t late = scene.random().below(scene.world);
        scene.traffic.add({.what = Op::all_to_all,
                           .count = scene.random().below(30'000),
                           .in_place = scene.random().chance(0.5),
                           .timeout = std::chrono::seconds(5)});
        const TimePoint begin = scene.cluster.world().now();
        scene.traffic.start_all_except(late);
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(6)));
        EXPECT_GE(scene.cluster.world().now() - begin, std::chrono::seconds(5));
        // The late rank gets the error when it calls.
        scene.cluster.world().run_for(std::chrono::seconds(1));
        scene.traffic.start_next(late);
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(1)));
        for (std::size_t rank = 0; rank < scene.world; ++rank) expect_timed_out(scene, rank, late);
        scene.traffic.expect_untouched_and_forget();
        ASSERT_NO_FATAL_FAILURE(expect_next_calls_succeed(scene));
        scene.cluster.close();
    });
}

TEST(CollectiveEnds, each_waiting_rank_logs_one_warning_that_names_the_late_rank) {
    constexpr std::size_t kWorld = 4;
    constexpr std::size_t kLate = 2;
    SimCluster cluster(test_seed(1), kWorld);
    CollectiveTraffic traffic(cluster, 1);
    traffic.set_profile({.forced = "all_to_all=windowed"});
    ASSERT_TRUE(cluster.connect());
    traffic.add({.what = Op::all_to_all, .count = 1000});
    configure_log({.lines_per_second = 0});
    const LogCapture log;
    traffic.start_all_except(kLate);
    cluster.world().run_for(std::chrono::seconds(4));
    EXPECT_TRUE(log.lines().empty());
    cluster.world().run_for(std::chrono::seconds(295));
    EXPECT_EQ(log.lines().size(), kWorld - 1);
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
        if (rank == kLate) continue;
        const std::string text = "all_to_all #0 at rank " + std::to_string(rank) +
                                 " has been waiting 5 s for rank " + std::to_string(kLate);
        EXPECT_EQ(std::ranges::count(log.lines(), text, &LogCapture::Line::text), 1) << text;
    }
    configure_log({});
    traffic.start_next(kLate);
    ASSERT_TRUE(traffic.run());
    traffic.expect_success();
    traffic.expect_untouched_and_forget();
    cluster.close();
}

}  // namespace
}  // namespace nexar::testing
