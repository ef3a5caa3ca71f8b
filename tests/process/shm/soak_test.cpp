// The long forms of kill_test.cpp.

#include <gtest/gtest.h>

#include "process/shm/kill_scenario.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;

TEST(ShmSoak, survivors_notice_200_killed_ranks_within_100_ms_and_nothing_is_left_behind) {
    survive_kills({.kills = 200, .seed = test_seed(1), .latest = 200ms});
}

TEST(ShmSoak, survivors_notice_killed_ranks_in_a_world_of_8) {
    survive_kills({.kills = 50, .world = 8, .seed = test_seed(3), .latest = 200ms});
}

TEST(ShmSoak, traffic_goes_on_after_stops_of_5_s) {
    survive_stops({.stops = 4, .each = 5s, .seed = test_seed(2)});
}

}  // namespace
}  // namespace nexar::testing
