// `nexar run` many times, killed at any moment; and over ssh with the default timeouts.

#include <gtest/gtest.h>

#include "process/run_many_times.hpp"
#include "process/run_ssh_fixture.hpp"

namespace nexar {
namespace {

class RunSoak : public RunManyTimes {};

TEST_F(RunSoak, two_hundred_runs_leave_no_process_behind) {
    run_many(200);
}

// With the default timeouts, every loss is noticed within 15 s.

TEST_F(RunSsh, cut_cable_is_noticed_within_15_s) {
    lose_host("15s", std::chrono::seconds(15));
}

TEST_F(RunSsh, host_that_lost_its_launcher_ends_its_ranks_within_16_s) {
    lose_launcher("15s", std::chrono::seconds(16));
}

TEST_F(RunSsh, filtered_port_is_reported_within_15_s) {
    meet_a_filtered_port("15s", std::chrono::seconds(15));
}

}  // namespace
}  // namespace nexar
