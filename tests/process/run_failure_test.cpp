// `nexar run --on-failure` with real processes that fail after they have joined.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "process/run_failure_fixture.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> continuing() {
    return {"--on-failure", "continue"};
}

std::vector<std::string> with(std::vector<std::string> options, std::vector<std::string> more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
}

TEST_F(RunFailure, others_continue_after_a_crash_and_the_run_succeeds) {
    auto program = joined(3, continuing(), script());
    end("1", "signal 9");
    ASSERT_TRUE(
        program->writes("nexar run: rank 1 was killed by signal 9 (SIGKILL); the other 2 "
                        "processes continue\n"))
        << program->errors();
    end("0", "exit 0");
    end("2", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_THAT(program->errors(), Not(HasSubstr("SIGTERM")));
}

TEST_F(RunFailure, exit_code_other_than_0_is_a_failure_too) {
    auto program = joined(2, continuing(), script());
    end("0", "exit 3");
    ASSERT_TRUE(
        program->writes("nexar run: rank 0 exited with code 3; the other process continues\n"));
    end("1", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, run_fails_with_the_last_process) {
    auto program = joined(3, continuing(), script());
    end("2", "exit 0");
    ASSERT_TRUE(program->writes("rank 2 exited with code 0 while"));
    end("0", "exit 3");
    ASSERT_TRUE(program->writes("rank 0 exited with code 3; the other process continues"));
    end("1", "exit 5");
    EXPECT_EQ(program->wait(), 5) << "nobody has succeeded after the last failure";
    EXPECT_THAT(program->errors(), HasSubstr("nexar run: rank 1 exited with code 5\n"));
}

TEST_F(RunFailure, run_ends_if_fewer_than_min_processes_are_left) {
    auto program = joined(3, with(continuing(), {"--min", "2"}), script());
    end("1", "exit 3");
    ASSERT_TRUE(program->writes("rank 1 exited with code 3; the other 2 processes continue"));
    end("2", "exit 7");
    EXPECT_EQ(program->wait(), 7);
    EXPECT_THAT(program->errors(),
                HasSubstr("nexar run: rank 2 exited with code 7; 1 process left, fewer than --min "
                          "2; the others get SIGTERM, and SIGKILL after 10s\n"));
}

TEST_F(RunFailure, first_failure_ends_the_run_without_the_option) {
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{}, std::vector<std::string>{"--on-failure", "end"}}) {
        auto program = joined(3, options, script());
        end("1", "exit 3");
        EXPECT_EQ(program->wait(), 3);
        EXPECT_THAT(program->errors(),
                    HasSubstr("nexar run: rank 1 exited with code 3; the others get SIGTERM"));
    }
}

TEST_F(RunFailure, failure_before_the_world_has_formed_ends_the_run) {
    for (const char* mode : {"continue", "restart"}) {
        const Outcome outcome =
            run({"-n", "3", "--on-failure", mode, "--nexar-formation-timeout=1h"},
                "[ $NEXAR_RANK = 1 ] && exit 3; " + script());
        EXPECT_EQ(outcome.exit_code, 3);
        EXPECT_THAT(outcome.errors, HasSubstr("nexar run: rank 1 exited with code 3 before the "
                                              "world had formed; the others get SIGTERM"));
    }
}

TEST_F(RunFailure, program_that_cannot_be_started_ends_the_run) {
    const Outcome outcome = run_program(
        NEXAR_COMMAND, {"run", "-n", "2", "--on-failure", "restart", "--", "./no-such-program"},
        environment());
    EXPECT_EQ(outcome.exit_code, 127);
    EXPECT_THAT(outcome.errors, HasSubstr("cannot be started: ./no-such-program: No such file"));
}

TEST_F(RunFailure, processes_that_a_failed_rank_started_are_killed_while_the_others_continue) {
    auto program = joined(2, continuing(),
                          "[ $NEXAR_RANK = 1 ] && { sleep 1000 & sleep 1000 & }; " + script());
    // Launcher, keeper, two ranks and two children.
    ASSERT_EQ(wait_for_processes(mark(), 6), 6U);
    end("1", "signal 9");
    EXPECT_EQ(wait_for_processes(mark(), 3), 3U);
    end("0", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, failed_process_is_restarted_a_limited_number_of_times) {
    auto program = joined(2, {"--on-failure", "restart", "--max-restarts", "2"},
                          script("echo again $NEXAR_RESTARTED rank ${NEXAR_RANK-none} local "
                                 "$NEXAR_LOCAL_RANK; printf incomplete; exit 9"));
    end("1", "exit 3");
    ASSERT_TRUE(
        program->writes("process 1.2 exited with code 9 and is not restarted again "
                        "(--max-restarts 2); the other process continues\n"))
        << program->errors();
    EXPECT_THAT(program->errors(),
                AllOf(HasSubstr("nexar run: rank 1 exited with code 3; process 1.1 starts in "
                                "100ms\n"),
                      HasSubstr("nexar run: process 1.1 exited with code 9; process 1.2 starts in "
                                "200ms\n")));
    EXPECT_THAT(program->output(),
                AllOf(HasSubstr("[1.1] again 1 rank none local 1\n[1.1] incomplete\n"),
                      HasSubstr("[1.2] again 2 rank none local 1\n")));
    end("0", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_THAT(program->output(), HasSubstr("[1.2] incomplete\n"));
    EXPECT_THAT(program->output(), Not(HasSubstr("[1.3]")));
}

TEST_F(RunFailure, used_up_restarts_count_against_min) {
    auto program = joined(2, {"--on-failure", "restart", "--max-restarts", "1", "--min", "2"},
                          script("exit 9"));
    end("1", "signal 14");  // one that sanitizers do not handle
    EXPECT_EQ(program->wait(), 9);
    EXPECT_THAT(program->errors(),
                AllOf(HasSubstr("rank 1 was killed by signal 14 (SIGALRM); process 1.1 starts in "
                                "100ms\n"),
                      HasSubstr("process 1.1 exited with code 9; 1 process left, fewer than --min "
                                "2; the others get SIGTERM")));
}

TEST_F(RunFailure, restarted_process_has_no_input_and_gets_signals) {
    auto program = joined(2, {"--on-failure", "restart"},
                          script("cat; trap 'echo usr1; exit 0' USR1; sleep 1000 & echo ready; "
                                 "while :; do wait; sleep 1000 & done"));
    end("1", "exit 3");
    ASSERT_TRUE(program->writes("[1.1] ready\n")) << program->errors();
    end("0", "exit 0");
    // Launcher, keeper, and the restarted process with its child, which was started before "ready".
    // So rank 0 has ended, and the signal cannot reach it.
    ASSERT_EQ(wait_for_processes(mark(), 4), 4U);
    program->send(SIGUSR1);
    EXPECT_TRUE(program->writes("[1.1] usr1\n"));
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, terminating_signal_ends_everything_and_restarts_nothing) {
    auto program = joined(2, {"--on-failure", "restart"}, script("echo again; exec sleep 1000"));
    end("1", "exit 3");
    ASSERT_TRUE(program->writes("[1.1] again\n"));
    program->send(SIGTERM);
    EXPECT_EQ(program->wait(), 128 + SIGTERM);
    EXPECT_THAT(program->errors(), Not(HasSubstr("1.2")));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunFailure, killing_the_launcher_kills_restarted_processes_too) {
    auto program = joined(2, {"--on-failure", "restart"},
                          script("setsid sleep 1000 & sleep 1000 & echo again; trap '' TERM; "
                                 "while :; do sleep 1000; done"));
    end("1", "signal 9");
    ASSERT_TRUE(program->writes("[1.1] again\n"));
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunFailure, pending_restart_does_not_delay_the_end_of_the_run) {
    auto program = joined(2, {"--on-failure", "restart", "--max-restarts", "9"}, script("exit 9"));
    end("1", "exit 3");
    ASSERT_TRUE(program->writes("process 1.6 starts in 3200ms\n")) << program->errors();
    end("0", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_THAT(program->errors(), Not(HasSubstr("1.7")));
}

TEST_F(RunFailure, rank_on_another_host_may_fail) {
    auto program =
        joined(3, with(continuing(), {"--host", "localhost:1,beta:2", "--min", "2"}), script());
    end("2", "signal 9");
    ASSERT_TRUE(
        program->writes("nexar run: rank 2 was killed by signal 9 (SIGKILL); the other 2 "
                        "processes continue\n"))
        << program->errors();
    end("0", "exit 0");
    end("1", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, failure_on_another_host_ends_the_run_if_too_few_are_left) {
    auto program =
        joined(3, with(continuing(), {"--host", "localhost:1,beta:2", "--min", "3"}), script());
    end("2", "exit 6");
    EXPECT_EQ(program->wait(), 6) << program->errors();
    EXPECT_THAT(program->errors(),
                HasSubstr("rank 2 exited with code 6; 2 processes left, fewer than --min 3; the "
                          "others get SIGTERM"));
}

TEST_F(RunFailure, rank_on_another_host_is_restarted_there) {
    auto program = joined(
        3, {"--on-failure", "restart", "--max-restarts", "2", "--host", "localhost:1,beta:2"},
        script("echo again $NEXAR_RESTARTED on $HOST_NAME; "
               "[ $NEXAR_RESTARTED = 2 ] || exit 9; exit 0"));
    end("2", "exit 3");
    ASSERT_TRUE(program->writes("[2.2] again 2 on beta\n")) << program->errors();
    EXPECT_THAT(program->output(), HasSubstr("[2.1] again 1 on beta\n"));
    EXPECT_THAT(program->errors(),
                AllOf(HasSubstr("nexar run: rank 2 exited with code 3; process 2.1 starts in "
                                "100ms\n"),
                      HasSubstr("nexar run: process 2.1 exited with code 9; process 2.2 starts in "
                                "200ms\n")));
    end("0", "exit 0");
    end("1", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, run_outlives_a_host) {
    auto program = joined(3, {"--on-failure", "restart", "--host", "localhost:1,beta:2"}, script());
    for (const pid_t process : processes_with(mark())) {
        // The part itself; its keeper ends its ranks.
        if (has_variable(process, "HOST_NAME=beta") && name_of_process(process) == "nexar") {
            ::kill(process, SIGKILL);
        }
    }
    ASSERT_TRUE(program->writes("; the other process continues\n")) << program->errors();
    EXPECT_THAT(program->errors(),
                ContainsRegex("nexar run: .*host beta \\(ranks 1 to 2\\).*; the other process"));
    end("0", "exit 0");
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunFailure, signal_ends_restarted_processes_on_other_hosts) {
    auto program = joined(2, {"--on-failure", "restart", "--host", "localhost:1,beta:1"},
                          script("echo again; exec sleep 1000"));
    end("1", "exit 3");
    ASSERT_TRUE(program->writes("[1.1] again\n")) << program->errors();
    program->send(SIGTERM);
    EXPECT_EQ(program->wait(), 128 + SIGTERM) << program->errors();
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunFailure, options_that_contradict_each_other_are_refused) {
    const auto refused = [&](const std::vector<std::string>& options) {
        const Outcome outcome = run(with({"-n", "2"}, options), "echo started");
        EXPECT_EQ(outcome.output, "");
        EXPECT_EQ(outcome.exit_code, 2);
        return outcome.errors;
    };
    EXPECT_THAT(refused({"--min", "1"}), HasSubstr("--min and --max need --on-failure"));
    EXPECT_THAT(refused({"--max", "3", "--on-failure", "end"}), HasSubstr("need --on-failure"));
    EXPECT_THAT(refused({"--on-failure", "continue", "--max-restarts", "1"}),
                HasSubstr("--max-restarts needs --on-failure restart"));
    EXPECT_THAT(refused({"--on-failure", "continue", "--min", "3"}),
                HasSubstr("--min: 3 is not between 1 and the number of ranks, 2"));
    EXPECT_THAT(refused({"--on-failure", "continue", "--min", "0"}), HasSubstr("--min: 0 is not"));
    EXPECT_THAT(refused({"--on-failure", "restart", "--max", "1"}),
                HasSubstr("--max: 1 is not between the number of ranks, 2, and 16384"));
    EXPECT_THAT(refused({"--on-failure", "restart", "--max", "16385"}),
                HasSubstr("--max: 16385 is not between the number of ranks, 2, and 16384"));
    EXPECT_THAT(refused({"--on-failure", "restart", "--max-restarts", "1000001"}),
                HasSubstr("--max-restarts: 1000001 is more than 1000000"));
    EXPECT_THAT(refused({"--on-failure", "panic"}), HasSubstr("--on-failure"));
}

}  // namespace
}  // namespace nexar
