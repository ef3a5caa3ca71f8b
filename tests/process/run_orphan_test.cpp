// `nexar run` killed at any moment: no process may be left behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "process/run_many_times.hpp"

namespace nexar {
namespace {

using testing::HasSubstr;

TEST_F(RunOrphans, killing_the_launcher_kills_all_descendants) {
    auto program = start({"-n", "3"}, kFamily);
    ASSERT_TRUE(program->writes("ready\n", 3));
    // Including the launcher and the keeper. This shows that the search finds all of them.
    ASSERT_EQ(wait_for_processes(mark(), 3 * kFamilySize + 2), 3 * kFamilySize + 2);
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunOrphans, killing_the_process_group_of_the_launcher_kills_the_ranks) {
    auto program = start({"-n", "2"}, kFamily);
    ASSERT_TRUE(program->writes("ready\n", 2));
    ::kill(-program->id(), SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunOrphans, killing_the_keeper_ends_the_run_and_all_descendants) {
    auto program = start({"-n", "2"}, kFamily);
    ASSERT_TRUE(program->writes("ready\n", 2));
    const pid_t kept_by = keeper();
    ASSERT_GT(kept_by, 0);
    ::kill(kept_by, SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_THAT(program->errors(), HasSubstr("the keeper process was killed"));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunOrphans, stopped_launcher_and_stopped_ranks_can_be_killed) {
    auto program = start({"-n", "2"}, "echo ready; kill -STOP $$");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGSTOP);
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunOrphans, ranks_that_fork_while_they_are_killed_do_not_escape) {
    // Each generation starts the next one in its own session and ends.
    auto program = start({"-n", "2"},
                         "echo ready; f() { setsid sh -c \"$1\" sh \"$1\" & }; "
                         "s='sleep 0.01; setsid sh -c \"$1\" sh \"$1\" & setsid sleep 1000 &'; "
                         "f \"$s\"; wait; sleep 1000");
    ASSERT_TRUE(program->writes("ready\n", 2));
    ASSERT_TRUE([&] {
        for (int i = 0; i < 1000; ++i) {
            if (processes_with(mark()).size() > 20) return true;
        }
        return false;
    }());
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunManyTimes, twenty_runs_leave_no_process_behind) {
    run_many(20);
}

}  // namespace
}  // namespace nexar
