#include <gtest/gtest.h>

#include <cstdio>

#include "process/sparse/scenarios.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(SparseRelay, that_is_killed_pauses_a_transfer_for_less_than_a_second) {
    const double pause =
        pause_after_relay_is_killed({.world = 8, .topology = "k_regular:4"}, test_seed(1));
    std::printf("the longest pause was %.0f ms\n", pause * 1e3);
    EXPECT_LT(pause, kSanitized ? 4 : 1);
}

}  // namespace
}  // namespace nexar::testing
