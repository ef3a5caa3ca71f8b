#include <gtest/gtest.h>

#include <string_view>

#include "sim/membership_chaos.hpp"
#include "sim/membership_runs.hpp"
#include "sim/membership_topology.hpp"
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

class SparseChaos : public ::testing::TestWithParam<std::string_view> {
protected:
    routing::Topology topology() const { return routing::Topology::parse(GetParam()).value(); }
};

INSTANTIATE_TEST_SUITE_P(Membership, SparseChaos, ::testing::ValuesIn(kSparseTopologies),
                         [](const ::testing::TestParamInfo<std::string_view>& one) {
                             return test_name(one.param);
                         });

TEST_P(SparseChaos, one_seed_twice) {
    const std::uint64_t seed = test_seed(1);
    const ChaosResult first = MembershipChaos(seed, topology()).run();
    const ChaosResult second = MembershipChaos(seed, topology()).run();
    EXPECT_EQ(first.failure, "");
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
}

TEST_P(SparseChaos, keeps_its_promises) {
    expect_clean(test_seed(1), 100, topology());
}

}  // namespace
}  // namespace nexar::testing
