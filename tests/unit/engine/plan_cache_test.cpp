#include "engine/plan_cache.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace nexar::engine {
namespace {

PlanCache::Key key(std::uint64_t count) {
    return {.operation = schedule::Collective::broadcast, .count = count};
}

PlanCache::Entry plan_of(std::size_t steps) {
    schedule::Schedule schedule;
    schedule.steps.resize(steps);
    return {.plan = std::make_shared<const Plan>(std::move(schedule), 4)};
}

TEST(PlanCache, evicts_the_least_recently_used_plan) {
    PlanCache cache;
    for (std::uint64_t i = 0; i < PlanCache::kMost; ++i) cache.add(key(i), plan_of(i + 1));
    ASSERT_NE(cache.find(key(0)), nullptr);  // now the most recently used
    cache.add(key(1000), plan_of(1));
    EXPECT_EQ(cache.size(), PlanCache::kMost);
    EXPECT_EQ(cache.find(key(1)), nullptr);
    ASSERT_NE(cache.find(key(0)), nullptr);
    EXPECT_EQ(cache.find(key(0))->plan->size(), 1U);
    EXPECT_EQ(cache.find(key(7))->plan->size(), 8U);
}

TEST(PlanCache, distinguishes_calls_that_need_different_plans) {
    PlanCache cache;
    cache.add(key(5), plan_of(1));
    auto other = key(5);
    other.in_place = true;
    EXPECT_EQ(cache.find(other), nullptr);
    other = key(5);
    other.root = 1;
    EXPECT_EQ(cache.find(other), nullptr);
    other = key(5);
    other.commutative = false;
    EXPECT_EQ(cache.find(other), nullptr);
}

TEST(PlanCache, holds_fewer_plans_when_they_are_long) {
    PlanCache cache;
    for (std::uint64_t i = 0; i < 5; ++i) cache.add(key(i), plan_of(PlanCache::kMostSteps / 2));
    EXPECT_EQ(cache.size(), 2U);
    cache.add(key(9), plan_of(PlanCache::kMostSteps * 2));
    EXPECT_EQ(cache.size(), 1U);
    EXPECT_NE(cache.find(key(9)), nullptr);
}

}  // namespace
}  // namespace nexar::engine
