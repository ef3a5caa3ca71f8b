// Formulas and choices for ranks on several hosts, compared with the clock.

#include "schedule/level_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "cases.hpp"
#include "schedule/choice.hpp"
#include "schedule/timing.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::HasSubstr;
using Machines = std::vector<std::uint32_t>;

constexpr std::uint64_t kElementOnHosts = 4;

/// `hosts` hosts of `each` ranks, in blocks.
Links blocks(std::uint32_t hosts, std::uint32_t each) {
    Machines machines;
    for (std::uint32_t rank = 0; rank < hosts * each; ++rank) machines.push_back(rank / each);
    return Links(machines);
}

/// The same with neighbours on different hosts.
Links in_turn(std::uint32_t hosts, std::uint32_t each) {
    Machines machines;
    for (std::uint32_t rank = 0; rank < hosts * each; ++rank) machines.push_back(rank % hosts);
    return Links(machines);
}

struct Place {
    const char* name;
    std::uint32_t world;
    Links links;
    bool exact = true;  // equal hosts with powers of two of consecutive ranks
};

std::vector<Place> places() {
    return {{"2x4", 8, blocks(2, 4)},
            {"4x2", 8, blocks(4, 2)},
            {"2x8", 16, blocks(2, 8)},
            {"8x4", 32, blocks(8, 4)},
            {"3x3", 9, blocks(3, 3), false},
            {"2x4 in turn", 8, in_turn(2, 4), false},
            {"4x4 in turn", 16, in_turn(4, 4), false},
            {"5+3", 8, Links(Machines{0, 0, 0, 0, 0, 1, 1, 1}), false}};
}

/// `network`: bytes per second of a host; 0: without limit.
Profile profile_on(const Links& links, double network) {
    Profile profile{.links = links, .host_rates = kSharedMemoryRates};
    if (network != 0) profile.rates.shared_byte = 1 / network;
    return profile;
}

Workload workload_on(Collective operation, std::uint32_t world, std::uint64_t bytes) {
    const std::uint64_t count = operation == Collective::barrier ? 0 : bytes / kElementOnHosts;
    return {.operation = operation,
            .world = world,
            .count = count,
            .largest = Chunks::even(count, world).largest(),
            .element_bytes = kElementOnHosts};
}

double clock_on(const Choice& choice, const Workload& workload, const Profile& profile) {
    Case c{.algorithm = choice.algorithm, .world = workload.world, .count = workload.count};
    c.segment = choice.segment;
    c.links = profile.links;
    if (workload.operation == Collective::all_to_all) c.count /= workload.world;
    const Fabric fabric{
        .rates = profile.rates, .host_rates = profile.host_rates, .links = profile.links};
    return run_on_clock(schedules(c, requests(c)), kElementOnHosts, fabric).value().seconds;
}

const std::vector<std::uint64_t> sizes{256, 16U << 10U, 1U << 20U, 32U << 20U};

std::vector<std::string_view> names_on(const Workload& workload, const Profile& profile) {
    std::vector<std::string_view> all;
    for (const Choice& choice : ranked(workload, profile)) all.push_back(choice.algorithm->name);
    return all;
}

TEST(LevelFormula, predicts_the_simulated_time_of_two_level_algorithms) {
    double least = 1;
    double most = 1;
    for (const double network : {0.0, 1.3e9}) {
        for (const Place& place : places()) {
            const Profile profile = profile_on(place.links, network);
            for (const Collective operation : kCollectives) {
                for (const std::uint64_t bytes : sizes) {
                    const Workload one = workload_on(operation, place.world, bytes);
                    for (const Choice& choice : ranked(one, profile)) {
                        if (!choice.algorithm->traits.two_level) continue;
                        const double ratio = choice.seconds / clock_on(choice, one, profile);
                        least = std::min(least, ratio);
                        most = std::max(most, ratio);
                        const bool exact = place.exact && network == 0;
                        EXPECT_GT(ratio, exact ? 0.75 : 0.6)
                            << place.name << " " << full_name(*choice.algorithm) << " " << bytes;
                        EXPECT_LT(ratio, exact ? 1.35 : 2.05)
                            << place.name << " " << full_name(*choice.algorithm) << " " << bytes;
                    }
                }
            }
        }
    }
    std::printf("formula / simulation %.2f to %.2f\n", least, most);
}

// Algorithms of one level may be faster than their formulas say where their partners happen to be
// on one host.
TEST(LevelFormula, leads_to_a_choice_that_simulates_about_as_fast_as_the_best) {
    for (const double network : {0.0, 1.3e9}) {
        for (const Place& place : places()) {
            const Profile profile = profile_on(place.links, network);
            for (const Collective operation :
                 {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                  Collective::all_gather, Collective::reduce_scatter, Collective::barrier}) {
                for (const std::uint64_t bytes : sizes) {
                    const Workload one = workload_on(operation, place.world, bytes);
                    const auto all = ranked(one, profile);
                    double best = clock_on(all.front(), one, profile);
                    const double taken = best;
                    for (const Choice& other : all)
                        best = std::min(best, clock_on(other, one, profile));
                    EXPECT_LE(taken, (network == 0 ? 1.2 : 1.5) * best)
                        << place.name << " " << schedule::name(operation) << " " << bytes
                        << " chose " << all.front().algorithm->name;
                }
            }
        }
    }
}

TEST(LevelFormula, predicts_the_traffic_of_two_level_algorithms) {
    for (const Place& place : places()) {
        if (!place.exact) continue;
        for (const Algorithm& algorithm : algorithms()) {
            if (!algorithm.traits.two_level) continue;
            Case c{.algorithm = &algorithm, .world = place.world, .count = 1U << 18U};
            c.links = place.links;
            if (algorithm.operation == Collective::barrier) c.count = 0;
            Traffic real;
            const auto built = schedules(c, requests(c));
            for (std::uint32_t rank = 0; rank < c.world; ++rank) {
                for (const Step& step : built[rank].steps) {
                    const auto bytes = static_cast<double>(step.count());
                    const bool near =
                        is_message(step.kind) && c.links.between(rank, step.peer) == LinkKind::host;
                    if (step.kind == Kind::send) (near ? real.near_messages : real.messages) += 1;
                    if (step.kind == Kind::send) (near ? real.near_bytes : real.bytes) += bytes;
                    if (folds(step.kind)) real.folded += bytes;
                }
            }
            const auto count = static_cast<double>(c.count);
            const Traffic formula = traffic_of(algorithm, {.world = c.world,
                                                           .bytes = count,
                                                           .chunk = count / c.world,
                                                           .levels = c.links.levels(c.world)});
            const auto expect_near = [&](double predicted, double counted) {
                EXPECT_NEAR(predicted, counted, 0.2 * counted) << to_text(c);
            };
            expect_near(formula.messages, real.messages);
            expect_near(formula.bytes, real.bytes);
            expect_near(formula.near_messages, real.near_messages);
            expect_near(formula.near_bytes, real.near_bytes);
            expect_near(formula.folded, real.folded);
        }
    }
}

TEST(ChoosingOnHosts, prefers_leaders_for_small_vectors_and_shares_for_large_ones) {
    const Profile profile = profile_on(blocks(3, 5), 0);
    const auto taken = [&](Collective operation, std::uint64_t bytes) {
        return choose(workload_on(operation, 15, bytes), profile).value().algorithm->name;
    };
    for (const Collective operation :
         {Collective::all_reduce, Collective::reduce, Collective::broadcast}) {
        EXPECT_EQ(taken(operation, 64), "leaders") << schedule::name(operation);
        EXPECT_EQ(taken(operation, 16U << 20U), "shares") << schedule::name(operation);
    }
    EXPECT_EQ(taken(Collective::all_gather, 16U << 20U), "shares");
    EXPECT_EQ(taken(Collective::reduce_scatter, 16U << 20U), "shares");
    for (const Collective operation : {Collective::gather, Collective::scatter}) {
        EXPECT_EQ(taken(operation, 64), "leaders") << schedule::name(operation);
        EXPECT_EQ(taken(operation, 16U << 20U), "shares") << schedule::name(operation);
    }
    EXPECT_EQ(taken(Collective::barrier, 0), "leaders");
}

TEST(ChoosingOnHosts, offers_two_level_algorithms_only_where_there_are_two_levels) {
    for (const Links& links : {blocks(8, 1), blocks(1, 8)}) {
        for (const Collective operation : kCollectives) {
            for (const std::uint64_t bytes : sizes) {
                for (const Choice& choice :
                     ranked(workload_on(operation, 8, bytes), profile_on(links, 0)))
                    EXPECT_FALSE(choice.algorithm->traits.two_level);
            }
        }
    }
    const Workload one = workload_on(Collective::all_reduce, 8, 64);
    Profile profile = profile_on(blocks(8, 1), 0);
    profile.forced = "shares";
    EXPECT_THAT(choose(one, profile).error().what(),
                HasSubstr("it has a phase within hosts, and every rank has its own host"));
    profile.links = blocks(1, 8);
    EXPECT_THAT(choose(one, profile).error().what(),
                HasSubstr("it has a phase between hosts, and all ranks are on one host"));
}

TEST(ChoosingOnHosts, keeps_the_order_of_ranks_and_the_bits_that_the_settings_require) {
    using ::testing::Contains;
    using ::testing::Not;
    Workload one = workload_on(Collective::all_reduce, 8, 1U << 20U);
    one.commutative = false;
    EXPECT_THAT(names_on(one, profile_on(blocks(2, 4), 0)), Contains("shares"));
    EXPECT_THAT(names_on(one, profile_on(in_turn(2, 4), 0)), Not(Contains("shares")));
    Profile mixed = profile_on(in_turn(2, 4), 0);
    mixed.forced = "leaders";
    EXPECT_THAT(choose(one, mixed).error().what(),
                HasSubstr("it folds the ranks of each host first, which are not consecutive"));

    one.commutative = true;
    EXPECT_THAT(names_on(one, profile_on(in_turn(2, 4), 0)), Contains("shares"));
    const auto in_runs = [&](const Links& links, std::uint32_t world) {
        Profile profile = profile_on(links, 0);
        profile.reproducibility = Reproducibility::runs;
        return names_on(workload_on(Collective::all_reduce, world, 1U << 20U), profile);
    };
    EXPECT_THAT(in_runs(blocks(2, 4), 8), Contains("leaders"));
    EXPECT_THAT(in_runs(in_turn(2, 4), 8), Not(Contains("leaders")));
    EXPECT_THAT(in_runs(blocks(3, 3), 9), Not(Contains("leaders")));
    // The first ranks of six form pairs in the canonical tree; here they do so on hosts.
    EXPECT_THAT(in_runs(Links(std::vector<std::uint32_t>{0, 0, 1, 1, 2, 3}), 6),
                Contains("leaders"));
}

TEST(ChoosingOnHosts, uses_fewer_ranks_where_the_network_of_a_host_is_the_bottleneck) {
    const Workload one = workload_on(Collective::broadcast, 16, 1U << 20U);
    const Choice wide = choose(one, profile_on(blocks(2, 8), 0)).value();
    const Choice narrow = choose(one, profile_on(blocks(2, 8), 1.3e9)).value();
    EXPECT_EQ(wide.algorithm->name, "shares");
    EXPECT_GT(narrow.seconds, 1.5 * wide.seconds);
}

}  // namespace
}  // namespace nexar::schedule::testing
