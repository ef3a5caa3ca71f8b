// Formulas and choices in sparse topologies, compared with a clock on which messages pass through
// relays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "schedule/choice.hpp"
#include "schedule/timing.hpp"
#include "schedule/traffic.hpp"
#include "unit/schedule/cases.hpp"
#include "unit/schedule/sparse.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kElementInSparse = 4;

struct SparseCluster {
    routing::Topology topology{};
    std::uint32_t world = 0;
    Hops hops{};
    NextHop ways{};
};

std::vector<SparseCluster> clusters() {
    std::vector<SparseCluster> all;
    for (const std::uint32_t world : {16U, 33U, 64U}) {
        for (const routing::Topology& topology :
             {routing::Topology::k_regular(4), routing::Topology::k_regular(8),
              routing::Topology::hypercube()}) {
            const Hops hops = hops_of(topology, world);
            all.push_back({topology, world, hops, shortest_ways(hops)});
        }
    }
    return all;
}

Workload workload_in(Collective operation, std::uint32_t world, std::uint64_t bytes) {
    const std::uint64_t count = operation == Collective::barrier ? 0 : bytes / kElementInSparse;
    return {.operation = operation,
            .world = world,
            .count = count,
            .largest = Chunks::even(count, world).largest(),
            .element_bytes = kElementInSparse};
}

const std::vector<std::uint64_t> sparse_sizes{256, 16U << 10U, 1U << 20U, 16U << 20U};

double clock_in(const Choice& choice, const Workload& workload, const SparseCluster& in) {
    Case c{.algorithm = choice.algorithm, .world = workload.world, .count = workload.count};
    c.segment = choice.segment;
    c.hops = in.hops;
    if (rooted(workload.operation)) c.root = workload.world / 3;
    if (workload.operation == Collective::all_to_all) c.count /= workload.world;
    const Fabric fabric{.next_hop = in.ways};
    return run_on_clock(schedules(c, requests(c)), kElementInSparse, fabric).value().seconds;
}

std::string name_in(const SparseCluster& in, const Choice& choice, std::uint64_t bytes) {
    return in.topology.text() + " " + std::to_string(in.world) + " " +
           full_name(*choice.algorithm) + " " + std::to_string(bytes);
}

/// Calls `look` for every collective of some size in every cluster.
template <class Look>
void for_each_workload(const Look& look) {
    for (const SparseCluster& in : clusters()) {
        for (const Collective operation : kCollectives) {
            for (const std::uint64_t bytes : sparse_sizes) {
                look(in, workload_in(operation, in.world, bytes), bytes);
            }
        }
    }
}

// The messages of a round take different ways, and the formula knows only how long they are.
TEST(SparseFormula, predicts_the_simulated_time_with_relays) {
    double least = 1;
    double most = 1;
    for_each_workload([&](const SparseCluster& in, const Workload& one, std::uint64_t bytes) {
        for (const Choice& choice : ranked(one, {.hops = in.hops})) {
            const double ratio = choice.seconds / clock_in(choice, one, in);
            least = std::min(least, ratio);
            most = std::max(most, ratio);
            EXPECT_GT(ratio, 0.45) << name_in(in, choice, bytes);
            EXPECT_LT(ratio, 2.6) << name_in(in, choice, bytes);
            // Nothing is relayed along trees, and hardly anything along rings.
            const Peers peers = choice.algorithm->peers;
            if (peers != Peers::tree && peers != Peers::next) continue;
            EXPECT_GT(ratio, 0.75) << name_in(in, choice, bytes);
            EXPECT_LT(ratio, 1.65) << name_in(in, choice, bytes);
        }
    });
    std::printf("formula / simulation %.2f to %.2f\n", least, most);
}

TEST(SparseFormula, leads_to_a_choice_that_simulates_about_as_fast_as_the_best) {
    for_each_workload([&](const SparseCluster& in, const Workload& one, std::uint64_t bytes) {
        const auto all = ranked(one, {.hops = in.hops});
        const double taken = clock_in(all.front(), one, in);
        for (const Choice& other : all) {
            EXPECT_LE(taken, 1.8 * clock_in(other, one, in))
                << name_in(in, all.front(), bytes) << ", not " << other.algorithm->name;
        }
    });
}

TEST(SparseFormula, predicts_the_traffic_along_a_tree) {
    for (const SparseCluster& in : clusters()) {
        for (const Algorithm& algorithm : algorithms()) {
            if (algorithm.peers != Peers::tree) continue;
            Case c{.algorithm = &algorithm, .world = in.world, .count = 64 * in.world};
            if (algorithm.operation == Collective::barrier) c.count = 0;
            c.hops = in.hops;
            Traffic real;
            for (const Schedule& rank : schedules(c, requests(c))) {
                for (const Step& step : rank.steps) {
                    if (folds(step.kind)) real.folded += static_cast<double>(step.count());
                    if (step.kind != Kind::send) continue;
                    real.messages += 1;
                    real.bytes += static_cast<double>(step.count());
                }
            }
            const auto count = static_cast<double>(c.count);
            const Traffic formula = traffic_of(algorithm, {.world = c.world,
                                                           .bytes = count,
                                                           .chunk = count / c.world,
                                                           .stretches = in.hops.stretches()});
            // The first rank and the last one have chunks on one side only.
            EXPECT_NEAR(formula.messages, real.messages, 2) << full_name(algorithm);
            EXPECT_EQ(formula.bytes, real.bytes) << full_name(algorithm);
            EXPECT_EQ(formula.folded, real.folded) << full_name(algorithm);
        }
    }
}

/// All hops of every pattern, with more of them.
Stretches stretched(Stretches hops, double factor) {
    const auto more = [&](Stretch& one) {
        one.mean = 1 + factor * (one.mean - 1);
        one.path = 1 + factor * (one.path - 1);
        one.load = 1 + factor * (one.load - 1);
    };
    for (Stretch* one : {&hops.few, &hops.all, &hops.partners, &hops.shifted, &hops.next_rank,
                         &hops.next, &hops.tree})
        more(*one);
    std::ranges::for_each(hops.partners_in_round, more);
    std::ranges::for_each(hops.shifted_in_round, more);
    return hops;
}

TEST(SparseFormula, never_predicts_less_time_for_more_hops) {
    for_each_workload([&](const SparseCluster& in, const Workload& one, std::uint64_t bytes) {
        for (const Choice& choice : ranked(one, {.hops = in.hops})) {
            for (const double ranks_per_core : {1.0, 4.0}) {
                const Rates rates{.ranks_per_core = ranks_per_core};
                double before = 0;
                for (const double factor : {0.0, 0.5, 1.0, 1.5, 3.0}) {
                    const Stretches hops = stretched(*in.hops.stretches(), factor);
                    const double seconds = predicted_seconds(
                        *choice.algorithm,
                        {.world = one.world,
                         .bytes = static_cast<double>(one.count * one.element_bytes),
                         .chunk = static_cast<double>(one.largest * one.element_bytes),
                         .segment = static_cast<double>(choice.segment * one.element_bytes),
                         .stretches = &hops},
                        rates);
                    EXPECT_GE(seconds, before) << name_in(in, choice, bytes) << " " << factor;
                    before = seconds;
                }
            }
        }
    });
}

TEST(SparseFormula, is_that_of_a_full_mesh_where_every_peer_is_a_neighbour) {
    Stretches none = stretched(*hops_of(routing::Topology::k_regular(4), 33).stretches(), 0);
    for (const Collective operation : kCollectives) {
        for (const std::uint64_t bytes : sparse_sizes) {
            const Workload one = workload_in(operation, 33, bytes);
            for (const Choice& choice : ranked(one, {})) {
                const Extent extent{
                    .world = 33,
                    .bytes = static_cast<double>(one.count * kElementInSparse),
                    .chunk = static_cast<double>(one.largest * kElementInSparse),
                    .segment = static_cast<double>(choice.segment * kElementInSparse)};
                Extent same = extent;
                same.stretches = &none;
                EXPECT_EQ(predicted_seconds(*choice.algorithm, same, Rates{}),
                          predicted_seconds(*choice.algorithm, extent, Rates{}))
                    << full_name(*choice.algorithm);
            }
        }
    }
}

std::vector<std::string_view> names_in(const Workload& one, const Profile& profile) {
    std::vector<std::string_view> names;
    for (const Choice& choice : ranked(one, profile)) names.push_back(choice.algorithm->name);
    return names;
}

TEST(ChoosingInSparseTopologies, offers_spanning_trees_only_there) {
    const Profile full;
    const Profile sparse{.hops = hops_of(routing::Topology::k_regular(4), 40)};
    for (const Collective operation :
         {Collective::all_reduce, Collective::reduce, Collective::broadcast, Collective::all_gather,
          Collective::gather, Collective::scatter, Collective::barrier}) {
        const Workload one = workload_in(operation, 40, 4096);
        EXPECT_THAT(names_in(one, full), ::testing::Not(::testing::Contains("spanning_tree")));
        EXPECT_THAT(names_in(one, sparse), ::testing::Contains("spanning_tree"));
    }
    Profile forced = sparse;
    forced.forced = "broadcast=spanning_tree";
    EXPECT_EQ(choose(workload_in(Collective::broadcast, 40, 64), forced)->algorithm->name,
              "spanning_tree");
    Workload ordered = workload_in(Collective::all_reduce, 40, 64);
    ordered.commutative = false;
    EXPECT_THAT(names_in(ordered, sparse), ::testing::Not(::testing::Contains("spanning_tree")));
    Profile runs = sparse;
    runs.reproducibility = Reproducibility::runs;
    EXPECT_THAT(names_in(workload_in(Collective::reduce, 40, 64), runs),
                ::testing::Not(::testing::Contains("spanning_tree")));
}

TEST(ChoosingInSparseTopologies, prefers_trees_for_small_vectors_and_rings_for_large_ones) {
    const Profile sparse{.hops = hops_of(routing::Topology::k_regular(8), 1024)};
    const auto taken = [&](Collective operation, std::uint64_t bytes) {
        return choose(workload_in(operation, 1024, bytes), sparse)->algorithm->name;
    };
    for (const Collective operation : {Collective::all_reduce, Collective::broadcast,
                                       Collective::all_gather, Collective::barrier}) {
        EXPECT_EQ(taken(operation, 4096), "spanning_tree") << schedule::name(operation);
    }
    EXPECT_EQ(taken(Collective::all_reduce, 1U << 30U), "segmented_ring");
    EXPECT_THAT(std::string(taken(Collective::all_gather, 1U << 30U)), HasSubstr("ring"));
    EXPECT_EQ(taken(Collective::reduce_scatter, 1U << 30U), "ring");
}

TEST(ChoosingInSparseTopologies, is_the_same_on_ranks_with_equal_hops) {
    const Profile one{.hops = hops_of(routing::Topology::hypercube(), 40)};
    const Profile other{.hops = hops_of(routing::Topology::hypercube(), 40)};
    EXPECT_EQ(one.hash(), other.hash());
    EXPECT_NE(one.hash(), Profile{}.hash());
    EXPECT_NE(one.hash(), Profile{.hops = hops_of(routing::Topology::k_regular(4), 40)}.hash());
    EXPECT_EQ(Profile{.hops = hops_of(routing::Topology::k_regular(4), 5)}.hash(),
              Profile{}.hash());
}

}  // namespace
}  // namespace nexar::schedule::testing
