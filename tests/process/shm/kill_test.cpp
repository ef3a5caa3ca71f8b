// Ranks that are killed or stopped in the middle of shared-memory traffic. soak_test.cpp has the
// long forms.

#include <gtest/gtest.h>

#include "process/shm/kill_scenario.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;

TEST(KilledRank, fails_the_operations_of_survivors_within_100_ms_and_leaves_nothing_behind) {
    survive_kills({.kills = 20, .seed = test_seed(1)});
}

TEST(StoppedRank, delays_traffic_and_does_not_break_it) {
    survive_stops({.stops = 1, .each = 1s, .seed = test_seed(2)});
}

}  // namespace
}  // namespace nexar::testing
