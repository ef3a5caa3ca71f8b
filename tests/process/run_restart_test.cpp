// `nexar run --on-failure restart` on a job that takes in the processes that replace failed ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "process/run_failure_fixture.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunRestart : public RunFailure {
protected:
    /// Starts the job, and waits until its first world has formed.
    std::unique_ptr<RunningProgram> work(std::vector<std::string> options,
                                         const std::string& prologue = "") const {
        options.insert(options.begin(), {"-n", "3", "--on-failure", "restart", "--env",
                                         "TEST_GATES=" + gates_.path()});
        auto program =
            start(std::move(options), "ulimit -c 0; " + prologue + "exec " NEXAR_ELASTIC_RANK);
        EXPECT_TRUE(program->writes("world 0,1,2\n", 3)) << program->errors();
        return program;
    }

    /// Kills the process with this rank in the cluster.
    static void kill(RunningProgram& program, int rank) {
        const std::string after = " is rank " + std::to_string(rank) + "\n";
        ASSERT_TRUE(program.writes(after)) << program.errors();
        const std::string before = "process ";
        const std::string& output = program.output();
        const std::size_t begin = output.rfind(before, output.find(after)) + before.size();
        ASSERT_EQ(::kill(std::stoi(output.substr(begin)), SIGKILL), 0);
    }

    /// Lets the job end.
    void stop() const { std::ofstream(gates_.path() + "/stop") << "stop"; }

    static constexpr const char* kCrashAgain =
        "[ -n \"$NEXAR_RESTARTED\" ] && export TEST_CRASH=1; ";
};

TEST_F(RunRestart, killed_rank_is_replaced_and_the_world_has_its_size_again) {
    for (const int victim : {0, 1}) {
        auto program = work({});
        kill(*program, victim);
        const std::string world = victim == 0 ? "1,2,3" : "0,2,3";
        ASSERT_TRUE(program->writes("world " + world + "\n", 3))
            << program->output() << program->errors();
        const std::string place = std::to_string(victim) + ".1";
        EXPECT_THAT(program->output(), HasSubstr("[" + place + "] world " + world + "\n"));
        EXPECT_THAT(program->errors(), HasSubstr("nexar run: rank " + std::to_string(victim) +
                                                 " was killed by signal 9 (SIGKILL); process " +
                                                 place + " starts in 100ms\n"));
        stop();
        EXPECT_EQ(program->wait(), 0) << program->errors();
        std::filesystem::remove(gates_ / "stop");
    }
}

TEST_F(RunRestart, replacement_joins_when_max_members_leaves_no_spare_place) {
    auto program = work({"--max", "3"});
    kill(*program, 2);
    ASSERT_TRUE(program->writes("world 0,1,3\n", 3)) << program->output() << program->errors();
    stop();
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunRestart, replacement_is_replaced_too) {
    auto program = work({});
    kill(*program, 1);
    ASSERT_TRUE(program->writes("world 0,2,3\n", 3)) << program->output() << program->errors();
    kill(*program, 3);
    ASSERT_TRUE(program->writes("world 0,2,4\n", 3)) << program->output() << program->errors();
    EXPECT_THAT(program->output(), HasSubstr("[1.2] world 0,2,4\n"));
    stop();
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunRestart, replacement_that_always_crashes_is_given_up_and_the_others_finish) {
    auto program = work({"--max-restarts", "2"}, kCrashAgain);
    kill(*program, 1);
    ASSERT_TRUE(
        program->writes("process 1.2 was killed by signal 6 (SIGABRT) and is not restarted again "
                        "(--max-restarts 2); the other 2 processes continue\n"))
        << program->errors();
    EXPECT_THAT(program->output(),
                AllOf(HasSubstr("[1.1] world 0,2,3\n"), HasSubstr("[1.2] world 0,2,4\n")));
    stop();
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_THAT(program->output(), Not(HasSubstr("[1.3]")));
}

TEST_F(RunRestart, replacement_that_always_crashes_ends_the_run_below_min) {
    auto program = work({"--max-restarts", "1", "--min", "3"}, kCrashAgain);
    kill(*program, 1);
    EXPECT_EQ(program->wait(), 128 + SIGABRT);
    EXPECT_THAT(program->errors(),
                HasSubstr("process 1.1 was killed by signal 6 (SIGABRT); 2 processes left, fewer "
                          "than --min 3; the others get SIGTERM"));
}

}  // namespace
}  // namespace nexar
