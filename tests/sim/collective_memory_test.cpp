// Collectives of ranks that share memory: results, and how they end when a rank is lost, cancels,
// is late or makes another call. Links carry only what is not data, and calls that need messages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster.hpp"
#include "collective_traffic.hpp"
#include "schedule/registry.hpp"
#include "support/seed.hpp"
#include "unit/base/log_capture.hpp"
#include "unit/engine/heap_segment.hpp"

namespace nexar::testing {
namespace {

using ::testing::HasSubstr;
using Op = schedule::Collective;

/// Every algorithm. Where ranks do not know all counts, chunks of different sizes travel over
/// links.
std::vector<const schedule::Algorithm*> all_algorithms() {
    std::vector<const schedule::Algorithm*> all;
    for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
        if (!algorithm.traits.needs_tree) all.push_back(&algorithm);
    }
    return all;
}

/// A cluster whose first communicator shares memory.
struct MemoryScene {
    MemoryScene(std::uint64_t seed, std::size_t nodes, const std::string& forced = {})
        : world(nodes), cluster(seed, nodes), traffic(cluster, seed) {
        traffic.set_profile({.forced = forced});
        share(random().chance(0.5) ? std::size_t{16} << 10U : std::size_t{256} << 10U);
    }

    void share(std::size_t bytes) {
        const auto segments = heap_segments(static_cast<std::uint32_t>(world), bytes);
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            EXPECT_TRUE(cluster.node(rank).engine().set_memory(
                cluster.context(rank, 0), segments[rank], others_of(segments, rank)));
        }
    }

    Random& random() noexcept { return traffic.random(); }

    void add_random_calls(std::size_t calls) {
        for (std::size_t i = 0; i < calls; ++i) {
            traffic.add(random_call(random(), algorithms, world, 30'000));
        }
    }

    /// Every rank makes further calls, which earlier failures must not affect.
    void expect_next_calls_succeed() {
        add_random_calls(8);
        traffic.start_all();
        ASSERT_TRUE(traffic.run());
        traffic.expect_success();
        traffic.expect_untouched_and_forget();
    }

    std::size_t world;
    SimCluster cluster;
    CollectiveTraffic traffic;
    std::vector<const schedule::Algorithm*> algorithms = all_algorithms();
};

/// Runs `check` on clusters of 2 to 8 nodes.
template <class Check>
void for_memory_seeds(std::uint64_t seeds, const Check& check) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        MemoryScene scene(seed, 2 + seed % 7);
        ASSERT_TRUE(scene.cluster.connect());
        ASSERT_NO_FATAL_FAILURE(check(scene));
        ASSERT_FALSE(::testing::Test::HasFailure());
        scene.cluster.close();
    }
}

TEST(CollectivesInMemory, are_exact_in_any_mixture_with_messages) {
    for_memory_seeds(40, [](MemoryScene& scene) {
        for (int i = 0; i < 3; ++i) scene.expect_next_calls_succeed();
    });
}

TEST(CollectivesInMemory, are_exact_with_every_algorithm_in_every_variant) {
    for (const std::size_t world : {2U, 3U, 4U, 5U, 7U, 8U}) {
        MemoryScene scene(world, world, "all_reduce=slices,reduce=slices");
        ASSERT_TRUE(scene.cluster.connect());
        for (const schedule::Algorithm* const algorithm : scene.algorithms) {
            if (algorithm->traits.medium != schedule::Medium::memory) continue;
            for (const std::size_t count : {0U, 1U, 9U, 1000U, 30'000U}) {
                for (std::uint64_t variant = 0; variant < 8; ++variant) {
                    const bool uneven = (variant & 4U) != 0;
                    if (uneven && !algorithm->traits.takes_counts) continue;
                    scene.traffic.add({.what = algorithm->operation,
                                       .count = count,
                                       .in_place = (variant & 1U) != 0,
                                       .uneven = uneven,
                                       .floats = (variant & 2U) != 0,
                                       .root = static_cast<std::uint32_t>(count % world),
                                       .seed = count + world});
                }
            }
        }
        scene.traffic.start_all();
        ASSERT_TRUE(scene.traffic.run());
        scene.traffic.expect_success();
        scene.traffic.expect_untouched_and_forget();
        scene.cluster.close();
    }
}

TEST(CollectivesInMemory, begin_in_the_middle_of_a_program) {
    SimCluster cluster(1, 3);
    CollectiveTraffic traffic(cluster, 1);
    ASSERT_TRUE(cluster.connect());
    const auto run = [&] {
        traffic.add({.what = Op::all_reduce, .count = 10});
        traffic.add({.what = Op::all_reduce, .count = 10'000});
        traffic.start_all();
        ASSERT_TRUE(traffic.run());
        traffic.expect_success();
        traffic.expect_untouched_and_forget();
    };
    run();
    const auto segments = heap_segments(3, std::size_t{64} << 10U);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        ASSERT_TRUE(cluster.node(rank).engine().set_memory(cluster.context(rank, 0), segments[rank],
                                                           others_of(segments, rank)));
    }
    run();
    cluster.close();
}

TEST(CollectivesInMemory, do_not_wait_for_a_call_that_exchanges_counts_first) {
    MemoryScene scene(1, 3);
    ASSERT_TRUE(scene.cluster.connect());
    scene.traffic.add({.what = Op::all_gather, .count = 3});
    scene.traffic.add({.what = Op::all_gather, .count = 1000, .uneven = true});
    scene.traffic.add({.what = Op::all_gather, .count = 1000, .uneven = true});
    for (std::size_t rank = 0; rank < scene.world; ++rank) {
        scene.traffic.start_and_reserve(rank);
        scene.traffic.start_next(rank);
    }
    // The last call runs in memory; the one before it begins later and uses messages.
    scene.traffic.poll_memory();
    for (std::size_t rank = 0; rank < scene.world; ++rank) {
        EXPECT_TRUE(scene.traffic.ended(0, rank));
        EXPECT_TRUE(scene.traffic.ended(2, rank));
        scene.traffic.begin(1, rank);
        EXPECT_FALSE(scene.traffic.ended(1, rank));
    }
    ASSERT_TRUE(scene.traffic.run());
    scene.traffic.expect_success();
    scene.traffic.expect_untouched_and_forget();
    scene.expect_next_calls_succeed();
    scene.cluster.close();
}

TEST(CollectivesInMemory, cancelling_a_call_affects_no_other_call) {
    std::size_t cancelled = 0;
    std::size_t succeeded = 0;
    for_memory_seeds(60, [&](MemoryScene& scene) {
        Random& random = scene.random();
        const std::size_t rank = random.below(scene.world);
        scene.add_random_calls(2 + random.below(8));
        const std::size_t call = random.below(scene.traffic.calls());
        scene.cluster.world().after(Duration(random.below(30'000'000)),
                                    [&, call, rank] { scene.traffic.cancel(call, rank); });
        scene.traffic.start_all();
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(60)));
        scene.cluster.world().run_for(std::chrono::milliseconds(30));
        for (std::size_t i = 0; i < scene.traffic.calls(); ++i) {
            for (std::size_t at = 0; at < scene.world; ++at) {
                const auto& error = scene.traffic.error(i, at);
                if (i == call) ++(error ? cancelled : succeeded);
                if (!error) continue;
                EXPECT_EQ(i, call) << error->what();
                EXPECT_EQ(error->code(), Errc::cancelled) << error->what();
                EXPECT_EQ(error->rank(), static_cast<int>(rank)) << error->what();
            }
        }
        scene.traffic.expect_untouched_and_forget();
        ASSERT_NO_FATAL_FAILURE(scene.expect_next_calls_succeed());
    });
    EXPECT_GT(cancelled, 0U);
    EXPECT_GT(succeeded, 0U);
}

TEST(CollectivesInMemory, calls_time_out_on_every_rank_and_name_the_late_one) {
    const LogCapture log;
    for (const std::size_t count : {1U, 20'000U}) {
        MemoryScene scene(3, 3);
        ASSERT_TRUE(scene.cluster.connect());
        scene.traffic.add(
            {.what = Op::all_reduce, .count = count, .timeout = std::chrono::seconds(2)});
        scene.traffic.add({.what = Op::barrier});
        scene.traffic.start_all_except(1);
        scene.cluster.world().run_for(std::chrono::seconds(3));
        scene.traffic.start_next(1);
        scene.traffic.start_next(1);
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(60)));
        for (std::size_t rank = 0; rank < 3; ++rank) {
            const auto& error = scene.traffic.error(0, rank);
            ASSERT_TRUE(error) << rank;
            EXPECT_EQ(error->code(), Errc::timed_out);
            EXPECT_THAT(error->what(), HasSubstr("for rank 1;"));
            EXPECT_FALSE(scene.traffic.error(1, rank));
        }
        scene.traffic.expect_untouched_and_forget();
        ASSERT_NO_FATAL_FAILURE(scene.expect_next_calls_succeed());
        scene.cluster.close();
    }
}

TEST(CollectivesInMemory, calls_end_on_every_rank_when_a_rank_is_lost) {
    const LogCapture log;
    for_memory_seeds(60, [&](MemoryScene& scene) {
        Random& random = scene.random();
        const std::size_t victim = random.below(scene.world);
        scene.add_random_calls(1 + random.below(8));
        scene.cluster.world().after(Duration(random.below(20'000'000)), [&, victim] {
            for (std::size_t other = 0; other < scene.world; ++other) {
                if (other == victim) continue;
                sim::Carrier& carrier = scene.cluster.carrier(victim);
                sim::Link* const link = carrier.link_to(scene.cluster.member(other));
                if (link != nullptr) scene.cluster.fabric().break_link(carrier, link->id());
            }
        });
        scene.traffic.start_all();
        scene.cluster.world().run_for(std::chrono::milliseconds(40));
        const std::size_t barrier = scene.traffic.add({.what = Op::barrier});
        scene.traffic.start_all_except(victim);
        ASSERT_TRUE(scene.traffic.run(std::chrono::seconds(40)));
        for (std::size_t rank = 0; rank < scene.world; ++rank) {
            if (rank == victim) continue;
            EXPECT_TRUE(scene.traffic.error(barrier, rank)) << "rank " << rank;
            for (std::size_t call = 0; call < barrier; ++call) {
                const auto& error = scene.traffic.error(call, rank);
                EXPECT_TRUE(!error || error->code() == Errc::link_closed) << error->what();
            }
        }
        scene.traffic.expect_untouched_and_forget();
    });
}

/// Two ranks that make different calls, each set up by a function.
class Two {
public:
    Two() : scene_(11, 2) { EXPECT_TRUE(scene_.cluster.connect()); }
    ~Two() { scene_.cluster.close(); }
    Two(const Two&) = delete;
    Two& operator=(const Two&) = delete;

    void start(std::uint32_t rank, const CallTerms& terms) {
        calls_.push_back(make_call(terms, 2));
        calls_.back()->fill(rank, operations_[rank]);
        EngineNode& node = scene_.cluster.node(rank);
        node.on_done = [this, rank](engine::Operation& done) { errors_[rank] = done.error; };
        node.engine().advance(scene_.cluster.world().now());
        node.engine().start(scene_.cluster.context(rank, 0), operations_[rank]);
        node.settle();
    }
    void run() {
        const auto ended = [&] {
            scene_.traffic.poll_memory();
            return !operations_[0].active && !operations_[1].active;
        };
        ASSERT_TRUE(scene_.cluster.world().run_until(ended, std::chrono::seconds(20)));
        scene_.cluster.world().run_for(std::chrono::milliseconds(10));
    }
    const std::optional<Error>& error(std::uint32_t rank) const { return errors_[rank]; }

private:
    MemoryScene scene_;
    std::vector<std::unique_ptr<CollectiveCall>> calls_;
    std::array<engine::CollectiveOperation, 2> operations_;
    std::array<std::optional<Error>, 2> errors_{};
};

TEST(CollectivesInMemory, ranks_that_make_different_calls_learn_both) {
    const LogCapture log;
    const CallTerms base{.what = Op::all_reduce, .count = 8};
    for (const CallTerms& other : {CallTerms{.what = Op::all_reduce, .count = 9},
                                   {.what = Op::all_reduce, .count = 90'000},
                                   {.what = Op::all_reduce, .count = 8, .floats = true},
                                   {.what = Op::barrier},
                                   {.what = Op::all_to_all, .count = 8, .uneven = true}}) {
        Two two;
        two.start(0, base);
        two.start(1, other);
        ASSERT_NO_FATAL_FAILURE(two.run());
        for (const std::uint32_t rank : {0U, 1U}) {
            ASSERT_TRUE(two.error(rank)) << schedule::name(other.what);
            EXPECT_EQ(two.error(rank)->code(), Errc::invalid_argument);
            EXPECT_THAT(two.error(rank)->what(), HasSubstr("rank 0 called"));
            EXPECT_THAT(two.error(rank)->what(), HasSubstr("rank 1 called"));
        }
        two.start(0, base);
        two.start(1, base);
        ASSERT_NO_FATAL_FAILURE(two.run());
        EXPECT_FALSE(two.error(0));
        EXPECT_FALSE(two.error(1));
    }
}

}  // namespace
}  // namespace nexar::testing
