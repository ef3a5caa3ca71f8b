#include <gtest/gtest.h>

#include "sim/membership_chaos.hpp"
#include "sim/membership_runs.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(MembershipChaos, one_seed_twice) {
    const std::uint64_t seed = test_seed(1);
    const ChaosResult first = MembershipChaos(seed).run();
    const ChaosResult second = MembershipChaos(seed).run();
    EXPECT_EQ(first.failure, "");
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
    EXPECT_GE(first.faults, 10U);
}

TEST(MembershipChaos, keeps_its_promises) {
    expect_clean(test_seed(1), 1000);
}

}  // namespace
}  // namespace nexar::testing
