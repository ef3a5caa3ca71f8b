#include <gtest/gtest.h>

#include <string_view>

#include "sim/membership_runs.hpp"
#include "sim/membership_topology.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(MembershipSoak, keeps_its_promises_in_20000_runs) {
    expect_clean(test_seed(1), 20'000);
}

TEST(MembershipSoak, keeps_its_promises_in_10000_runs_of_sparse_topologies) {
    const std::uint64_t first = test_seed(1);
    for (const std::string_view topology : kSparseTopologies)
        expect_clean(first, 5000, routing::Topology::parse(topology).value());
}

}  // namespace
}  // namespace nexar::testing
