#include "chaos/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "chaos/run.hpp"

namespace nexar::chaos {
namespace {

TEST(ChaosPlan, follows_from_the_seed) {
    EXPECT_EQ(faults_of({.seed = 5}), faults_of({.seed = 5}));
    EXPECT_NE(faults_of({.seed = 5}), faults_of({.seed = 6}));
}

TEST(ChaosPlan, has_ten_faults_or_more_in_sixty_seconds) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const Plan plan = plan_of(seed, 0, kBudget);
        EXPECT_GE(plan.nodes, 2U);
        EXPECT_LE(plan.nodes, 16U);
        EXPECT_GE(plan.faults.size(), 10U);
        EXPECT_EQ(plan.span, std::chrono::seconds(60));
        EXPECT_TRUE(std::ranges::is_sorted(plan.faults, {}, &Fault::at));
        for (const Fault& fault : plan.faults) {
            EXPECT_LT(fault.at, plan.span);
            EXPECT_GT(fault.a, 0U) << "machine 0 has the seed";
            EXPECT_LT(fault.a, plan.machines);
            EXPECT_LT(fault.b, plan.machines);
            EXPECT_NE(fault.a, fault.b);
        }
    }
}

TEST(ChaosPlan, has_faults_of_every_kind) {
    std::set<FaultKind> kinds;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        for (const Fault& fault : plan_of(seed, 4, kBudget).faults) kinds.insert(fault.kind);
    }
    EXPECT_EQ(kinds.size(), static_cast<std::size_t>(FaultKind::count));
}

TEST(ChaosPlan, command_repeats_the_run) {
    EXPECT_EQ(command_of({.seed = 7, .nodes = 5, .without = {3, 11}}),
              "nexar sim chaos --seed 7 --nodes 5 --without 3,11");
    EXPECT_EQ(command_of({.seed = 8}), "nexar sim chaos --seed 8");
}

}  // namespace
}  // namespace nexar::chaos
