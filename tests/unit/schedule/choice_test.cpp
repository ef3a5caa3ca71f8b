#include "schedule/choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "cases.hpp"
#include "schedule/memory_parts.hpp"
#include "schedule/timing.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Workload workload(Collective operation, std::uint32_t world, std::uint64_t bytes) {
    const std::uint64_t count = bytes / 4;
    return {.operation = operation,
            .world = world,
            .count = count,
            .largest = Chunks::even(count, world).largest(),
            .element_bytes = 4};
}

std::vector<std::string_view> names(const Workload& of, const Profile& profile) {
    std::vector<std::string_view> all;
    for (const Choice& choice : ranked(of, profile)) all.push_back(choice.algorithm->name);
    return all;
}

TEST(Choosing, finds_an_algorithm_for_every_operation_and_requirement) {
    for (const Collective operation : kCollectives) {
        for (const std::uint32_t world : {1U, 2U, 3U, 8U, 100U, 4096U}) {
            for (const std::uint64_t bytes : {0ULL, 8ULL, 1ULL << 20U, 1ULL << 36U}) {
                for (const auto kind : {Reproducibility::ranks, Reproducibility::runs}) {
                    for (const bool commutative : {true, false}) {
                        Workload one = workload(operation, world, bytes);
                        one.commutative = commutative;
                        const auto chosen = choose(one, {.reproducibility = kind});
                        ASSERT_TRUE(chosen) << name(operation) << " " << world;
                        const Traits& traits = chosen->algorithm->traits;
                        if (!reduces(operation)) continue;
                        EXPECT_TRUE(commutative || traits.keeps_order);
                    }
                }
            }
        }
    }
}

TEST(Choosing, minimises_total_work_where_ranks_share_processors) {
    const Profile alone;
    const Profile shared{.rates = {.ranks_per_core = 4}};
    const auto taken = [](const Workload& of, const Profile& profile) {
        return choose(of, profile).value().algorithm->name;
    };
    // Measured with 8 ranks on 2 processors (bench/choice.sh --ranks 8).
    const Workload pairs = workload(Collective::all_to_all, 8, 64);
    EXPECT_EQ(taken(pairs, alone), "windowed");
    EXPECT_EQ(taken(pairs, shared), "bruck");
    const Workload folds = workload(Collective::all_reduce, 8, 4096);
    EXPECT_EQ(taken(folds, alone), "recursive_doubling");
    EXPECT_EQ(taken(folds, shared), "tree");
    const Workload reduce = workload(Collective::reduce, 8, 64U << 10U);
    EXPECT_EQ(taken(reduce, alone), "reduce_scatter_gather");
    EXPECT_EQ(taken(reduce, shared), "binomial");
    for (const Collective operation : kCollectives) {
        for (const std::uint64_t bytes : {8ULL, 1ULL << 16U, 1ULL << 26U}) {
            const Workload one = workload(operation, 8, bytes);
            EXPECT_GT(choose(one, shared)->seconds, choose(one, alone)->seconds) << name(operation);
        }
    }
}

TEST(Choosing, prefers_few_rounds_for_small_vectors_and_few_bytes_for_large_ones) {
    const Profile profile;
    const auto small = choose(workload(Collective::all_reduce, 8, 64), profile).value();
    EXPECT_EQ(small.algorithm->name, "recursive_doubling");
    const auto large = choose(workload(Collective::all_reduce, 8, 64U << 20U), profile).value();
    EXPECT_THAT(std::string(large.algorithm->name),
                ::testing::AnyOf("segmented_ring", "halving_doubling"));
    EXPECT_EQ(choose(workload(Collective::barrier, 4, 0), profile)->algorithm->name, "flat");
    EXPECT_EQ(choose(workload(Collective::barrier, 5, 0), profile)->algorithm->name,
              "dissemination");
}

TEST(Choosing, never_chooses_an_algorithm_that_simulates_much_slower_than_another) {
    const Profile profile;
    for (const Collective operation : kCollectives) {
        for (const std::uint32_t world : {2U, 4U, 8U, 16U}) {
            for (std::uint64_t bytes = 256; bytes <= 64U << 20U; bytes *= 16) {
                const auto all = ranked(workload(operation, world, bytes), profile);
                const auto on_clock = [&](const Choice& choice) {
                    Case c{.algorithm = choice.algorithm, .world = world, .count = bytes / 4};
                    c.segment = choice.segment;
                    if (operation == Collective::all_to_all) c.count /= world;
                    return run_on_clock(schedules(c, requests(c)), 4, profile.rates)->seconds;
                };
                double best = on_clock(all.front());
                const double taken = best;
                for (const Choice& other : all) best = std::min(best, on_clock(other));
                EXPECT_LE(taken, 1.15 * best) << name(operation) << " world " << world << " bytes "
                                              << bytes << " chose " << all.front().algorithm->name;
            }
        }
    }
}

TEST(Choosing, offers_only_order_keeping_algorithms_to_operators_that_do_not_commute) {
    Workload one = workload(Collective::all_reduce, 6, 1U << 20U);
    EXPECT_THAT(names(one, {}), ::testing::Contains("ring"));
    one.commutative = false;
    EXPECT_THAT(names(one, {}), Not(::testing::Contains("ring")));
    EXPECT_THAT(names(one, {}), ::testing::Contains("tree"));
}

TEST(Choosing, offers_only_canonical_algorithms_where_runs_must_be_reproducible) {
    const Profile runs{.reproducibility = Reproducibility::runs};
    for (const Choice& choice : ranked(workload(Collective::all_reduce, 6, 1U << 20U), runs))
        EXPECT_TRUE(choice.algorithm->traits.canonical) << choice.algorithm->name;
    EXPECT_EQ(ranked(workload(Collective::scan, 6, 64), runs).size(), 1U);
}

TEST(Choosing, offers_only_algorithms_that_support_counts_to_v_variants) {
    Workload one = workload(Collective::gather, 6, 1U << 20U);
    one.has_counts = true;
    EXPECT_THAT(names(one, {}), ::testing::ElementsAre("flat"));
}

TEST(Choosing, uses_the_forced_algorithm_or_lists_the_usable_ones) {
    const Workload one = workload(Collective::all_reduce, 6, 1U << 20U);
    EXPECT_EQ(choose(one, {.forced = "tree"})->algorithm->name, "tree");
    const auto none = choose(one, {.forced = "rings"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Errc::bad_config);
    EXPECT_THAT(none.error().what(), HasSubstr("segmented_ring"));
    Workload strict = one;
    strict.commutative = false;
    EXPECT_FALSE(choose(strict, {.forced = "ring"}));
    EXPECT_EQ(choose(one, {.forced = "segmented_ring", .segment_bytes = 4096})->segment, 1024U);
}

TEST(Choosing, explains_why_spanning_tree_cannot_run_and_what_to_choose_instead) {
    // The setting accepts the name, because sparse topologies will use it.
    EXPECT_TRUE(check_forced("broadcast=spanning_tree"));
    const auto none =
        choose(workload(Collective::broadcast, 4, 64), {.forced = "broadcast=spanning_tree"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Errc::bad_config);
    EXPECT_THAT(none.error().what(),
                HasSubstr("broadcast=spanning_tree cannot be used here: it forwards "
                          "data along a given tree of links and is meant for sparse topologies, "
                          "but this cluster is fully connected (every rank has a link to every "
                          "other) and has no such tree; choose one of: "));
    for (const std::string_view usable : {"flat", "binomial", "scatter_all_gather", "chain"})
        EXPECT_THAT(none.error().what(), HasSubstr(std::string(usable)));
}

TEST(Choosing, explains_why_a_known_algorithm_cannot_run) {
    Workload one = workload(Collective::all_reduce, 6, 1U << 20U);
    one.commutative = false;
    EXPECT_THAT(
        choose(one, {.forced = "ring"}).error().what(),
        HasSubstr("all_reduce=ring cannot be used here: it reorders operands, and the operator "
                  "is not commutative; choose one of: recursive_doubling"));
    one.commutative = true;
    const Profile runs{.reproducibility = Reproducibility::runs, .forced = "ring"};
    EXPECT_THAT(choose(one, runs).error().what(),
                HasSubstr("which reproducibility=runs rules out"));
    Workload chunks = workload(Collective::gather, 6, 1U << 20U);
    chunks.has_counts = true;
    EXPECT_THAT(choose(chunks, {.forced = "binomial"}).error().what(),
                HasSubstr("gather=binomial cannot be used here: it needs chunks of equal size"));
    EXPECT_THAT(choose(workload(Collective::barrier, 5, 0), {.forced = "flat"}).error().what(),
                HasSubstr("it is for worlds of at most 4 ranks"));
    EXPECT_THAT(choose(one, {.forced = "rings"}).error().what(),
                HasSubstr("all_reduce has no algorithm \"rings\"; choose one of: "));
}

TEST(Choosing, uses_the_forced_algorithm_up_to_its_size) {
    const Profile profile{.forced =
                              "all_reduce=tree:64KiB,broadcast=chain:1000,all_reduce=ring:1MiB"};
    const auto taken = [&](std::uint64_t bytes) {
        return profile.forced_for(Collective::all_reduce, bytes);
    };
    EXPECT_EQ(taken(0), "tree");
    EXPECT_EQ(taken(64U << 10U), "tree");
    EXPECT_EQ(taken((64U << 10U) + 1), "ring");
    EXPECT_EQ(taken(1U << 20U), "ring");
    EXPECT_EQ(taken((1U << 20U) + 1), "");
    EXPECT_EQ(profile.forced_for(Collective::broadcast, 1000), "chain");
    EXPECT_EQ(profile.forced_for(Collective::broadcast, 1001), "");
    EXPECT_EQ(choose(workload(Collective::all_reduce, 6, 64U << 10U), profile)->algorithm->name,
              "tree");
    EXPECT_EQ(choose(workload(Collective::all_reduce, 6, 65U << 10U), profile)->algorithm->name,
              "ring");
    const Workload beyond = workload(Collective::all_reduce, 6, 2U << 20U);
    EXPECT_EQ(choose(beyond, profile)->algorithm, choose(beyond, {})->algorithm);
}

TEST(Choosing, accepts_only_lists_of_existing_operations_and_algorithms) {
    for (const std::string_view good :
         {"", "all_reduce=ring", "all_reduce=tree:64KiB,all_reduce=ring", "barrier=flat:0"}) {
        EXPECT_TRUE(check_forced(good)) << good;
    }
    for (const std::string_view bad :
         {"ring", "all_reduce", "all_reduce=", "all_reduce=rings", "reduce_all=ring",
          "all_reduce=ring:", "all_reduce=ring:64kib", "all_reduce=ring:-1",
          "all_reduce=tree:1KiB:2KiB", "all_reduce:64KiB=ring", ",all_reduce=ring"}) {
        EXPECT_FALSE(check_forced(bad)) << bad;
    }
}

TEST(Choosing, depends_on_the_slowest_link) {
    // Between hosts latency dominates, within a host bandwidth does.
    Profile profile{.rates = {.latency = 1e-3, .per_byte = 1e-10, .both_byte = 1e-10},
                    .host_rates = {.latency = 1e-6, .per_message = 1e-7}};
    const Workload one = workload(Collective::all_reduce, 8, 256U << 10U);
    const auto with = [&](std::vector<std::uint32_t> machines) {
        profile.links = Links(machines);
        return choose(one, profile).value();
    };
    const Choice far = with({0, 1, 2, 3, 4, 5, 6, 7});
    const Choice near = with({0, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(far.algorithm->name, "recursive_doubling");
    EXPECT_NE(near.algorithm->name, far.algorithm->name);
    EXPECT_LT(near.seconds, far.seconds);
    // An algorithm of one level waits for the slowest link in every round.
    profile.forced = "recursive_doubling";
    EXPECT_EQ(with({0, 0, 0, 0, 0, 0, 0, 1}).seconds, far.seconds);
}

constexpr Memory kMemory{.slot_bytes = 64 << 10U, .buffer_bytes = 2 << 20U};

TEST(Choosing, prefers_memory_for_ranks_that_share_some) {
    const Profile shared{.memory = kMemory};
    for (const Collective operation : kCollectives) {
        for (const std::uint32_t world : {2U, 3U, 8U}) {
            for (const std::uint64_t bytes : {8ULL, 1ULL << 12U, 1ULL << 20U, 1ULL << 30U}) {
                const Workload one = workload(operation, world, bytes);
                const auto chosen = choose(one, shared);
                ASSERT_TRUE(chosen);
                EXPECT_EQ(chosen->algorithm->traits.medium, Medium::memory)
                    << name(operation) << " " << world << " " << bytes;
                const auto alone = choose(one, {});
                ASSERT_TRUE(alone);
                EXPECT_EQ(alone->algorithm->traits.medium, Medium::messages);
            }
        }
    }
    const auto of = [&](std::uint64_t bytes) {
        return choose(workload(Collective::all_reduce, 8, bytes), shared)->algorithm->name;
    };
    EXPECT_EQ(of(8), "slots");
    EXPECT_EQ(of(1 << 10U), "slots");
    EXPECT_EQ(of(1 << 20U), "slices");
}

TEST(Choosing, keeps_rounds_within_the_shared_memory) {
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.traits.medium != Medium::memory) continue;
        for (const std::uint32_t world : {2U, 5U, 128U}) {
            for (const std::uint64_t bytes : {0ULL, 8ULL, 5ULL << 14U, 7ULL << 20U, 1ULL << 33U}) {
                Profile profile{.memory = kMemory, .forced = std::string(algorithm.name)};
                for (profile.segment_bytes = 0; profile.segment_bytes < 5000;
                     profile.segment_bytes += 4096) {
                    const Workload one = workload(algorithm.operation, world, bytes);
                    const auto chosen = choose(one, profile);
                    if (!chosen) continue;
                    const MemoryUse use{.world = world,
                                        .count = one.count,
                                        .largest = one.largest,
                                        .segment = chosen->segment};
                    const bool in_slot = chosen->segment == 0 && algorithm.traits.stages == 1;
                    EXPECT_LE(memory_extent(algorithm.traits, use) * 4,
                              in_slot ? kMemory.slot_bytes : kMemory.buffer_bytes);
                    EXPECT_LE(memory_rounds(algorithm.traits, use),
                              most_rounds(algorithm.traits.stages));
                }
            }
        }
    }
}

TEST(Choosing, says_why_an_algorithm_in_memory_cannot_run) {
    const Workload one = workload(Collective::all_reduce, 4, 1 << 20U);
    EXPECT_THAT(choose(one, {.forced = "slices"}).error().what(),
                HasSubstr("it runs in memory that all ranks share, and these ranks share none"));
    const Profile tiny{.memory = {.slot_bytes = 64, .buffer_bytes = 8}, .forced = "slices"};
    EXPECT_THAT(choose(one, tiny).error().what(),
                HasSubstr("the shared memory is too small for this vector and this many ranks"));
    Workload uneven = workload(Collective::all_gather, 4, 1 << 20U);
    uneven.has_counts = true;
    EXPECT_EQ(choose(uneven, {.memory = kMemory})->algorithm->traits.medium, Medium::memory);
    uneven.begins_late = true;
    EXPECT_EQ(choose(uneven, {.memory = kMemory})->algorithm->traits.medium, Medium::messages);
    EXPECT_THAT(choose(uneven, {.memory = kMemory, .forced = "slots"}).error().what(),
                HasSubstr("operations in memory run in the order of calls"));
    uneven = workload(Collective::gather, 4, 1 << 20U);
    uneven.has_counts = true;
    EXPECT_EQ(choose(uneven, {.memory = kMemory})->algorithm->traits.medium, Medium::messages);
}

TEST(Profiles, have_equal_hashes_only_if_they_are_equal) {
    const Profile plain;
    EXPECT_EQ(plain.hash(), Profile{}.hash());
    const std::vector<Profile> others{{.rates = {.latency = 9e-6}},
                                      {.rates = {.copy_byte = 1e-9}},
                                      {.rates = {.both_byte = 1e-9}},
                                      {.rates = {.fill_bytes = 1}},
                                      {.rates = {.ranks_per_core = 2}},
                                      {.rates = {.shared_byte = 1e-9}},
                                      {.reproducibility = Reproducibility::runs},
                                      {.forced = "ring"},
                                      {.forced = "gnir"},
                                      {.segment_bytes = 1},
                                      {.eager_bytes = 1},
                                      {.host_rates = {.latency = 9e-6}},
                                      {.links = Links(std::array{0U, 0U, 0U})},
                                      {.links = Links(std::array{0U, 0U, 1U})},
                                      {.memory = {.slot_bytes = 64}},
                                      {.memory = {.buffer_bytes = 64}},
                                      {.memory = {.latency = 1e-6}},
                                      {.memory = {.read_byte = 1e-9}}};
    for (std::size_t i = 0; i < others.size(); ++i) {
        EXPECT_NE(others[i].hash(), plain.hash()) << i;
        for (std::size_t j = 0; j < i; ++j) EXPECT_NE(others[i].hash(), others[j].hash());
    }
}

}  // namespace
}  // namespace nexar::schedule::testing
