#include <gtest/gtest.h>

#include "sim/membership_runs.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(MembershipSoak, keeps_its_promises_in_20000_runs) {
    expect_clean(test_seed(1), 20'000);
}

}  // namespace
}  // namespace nexar::testing
