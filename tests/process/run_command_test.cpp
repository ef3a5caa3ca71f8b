// `nexar run` with real processes on this machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "process/run_fixture.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string trimmed(std::string line) {
    line.pop_back();
    return line;
}

class RunCommand : public RunFixture {};

TEST_F(RunCommand, ranks_know_their_numbers_and_every_line_names_its_rank) {
    const Outcome outcome =
        run({"-n", "3"}, "echo $NEXAR_RANK/$NEXAR_WORLD_SIZE $NEXAR_LOCAL_RANK/$NEXAR_LOCAL_SIZE");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(sorted_lines(outcome.output),
                ElementsAre("[0] 0/3 0/3", "[1] 1/3 1/3", "[2] 2/3 2/3"));
    EXPECT_EQ(outcome.errors, "");
}

TEST_F(RunCommand, bound_ranks_have_processors_of_their_own) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two processors";
    const Outcome outcome = run({"-n", "2", "--bind"},
                                "sed -n 's/Cpus_allowed_list:.//p' "
                                "/proc/self/status");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto lines = sorted_lines(outcome.output);
    ASSERT_EQ(lines.size(), 2U) << outcome.output;
    EXPECT_NE(lines[0].substr(4), lines[1].substr(4)) << outcome.output;
}

TEST_F(RunCommand, output_and_errors_stay_separate_and_every_line_ends) {
    const Outcome outcome = run({"-n", "1"}, "printf out; printf 'bad\\n\\nworse' >&2");
    EXPECT_EQ(outcome.output, "[0] out\n");
    EXPECT_EQ(outcome.errors, "[0] bad\n[0] \n[0] worse\n");
}

TEST_F(RunCommand, program_begins_after_two_hyphens_or_at_the_first_word) {
    const Outcome with = run_program(
        NEXAR_COMMAND, {"run", "-n", "1", "--", "echo", "-n", "--", "--host"}, environment());
    EXPECT_EQ(with.output, "[0] -- --host\n") << with.errors;
    const Outcome without =
        run_program(NEXAR_COMMAND, {"run", "-n", "1", "echo", "a", "b"}, environment());
    EXPECT_EQ(without.output, "[0] a b\n") << without.errors;
}

TEST_F(RunCommand, flags_and_variables_apply_to_the_ranks) {
    const Outcome outcome =
        run({"-n", "1", "--nexar-log-level=debug", "--env", "COLOUR=blue", "--env", "HOME"},
            "echo $NEXAR_LOG_LEVEL $COLOUR $HOME");
    EXPECT_EQ(outcome.output, "[0] debug blue /nowhere\n") << outcome.errors;
}

TEST_F(RunCommand, ranks_learn_that_they_share_processors) {
    const std::string twice = std::to_string(2 * std::thread::hardware_concurrency());
    const std::string script = "echo $NEXAR_RANK ${NEXAR_FABRIC_RANKS_PER_CORE-alone}";
    const Outcome shared = run({"-n", twice}, script);
    EXPECT_THAT(shared.output, AllOf(HasSubstr("[0] 0 2\n"), Not(HasSubstr("alone"))))
        << shared.errors;
    EXPECT_EQ(run({"-n", "1"}, script).output, "[0] 0 alone\n");
    const Outcome told = run({"-n", twice, "--nexar-fabric-ranks-per-core=7"}, script);
    EXPECT_THAT(told.output, HasSubstr("[0] 0 7\n")) << told.errors;
}

TEST_F(RunCommand, invalid_command_lines_are_reported_before_anything_starts) {
    const auto refused = [&](const std::vector<std::string>& arguments) {
        const Outcome outcome = run(arguments, "echo started");
        EXPECT_EQ(outcome.output, "");
        EXPECT_EQ(outcome.exit_code, 2);
        return outcome.errors;
    };
    EXPECT_THAT(refused({}), HasSubstr("the number of ranks is missing"));
    EXPECT_THAT(refused({"-n", "0"}), HasSubstr("from 1 to 16384"));
    EXPECT_THAT(refused({"-n", "16385"}), HasSubstr("from 1 to 16384"));
    EXPECT_THAT(refused({"-n", "2", "--grace", "fast"}), HasSubstr("fast"));
    EXPECT_THAT(refused({"-n", "2", "--hots", "a"}), HasSubstr("--hots"));
    EXPECT_THAT(refused({"-n", "2", "--host", "-oProxyCommand=x"}),
                HasSubstr("is not a valid host name"));
    EXPECT_THAT(refused({"-n", "2", "--env", "NEXAR_NO_SUCH_VARIABLE"}), HasSubstr("is not set"));
    const Outcome bad_setting = run({"-n", "2", "--nexar-log-level=debgu"}, "echo started");
    EXPECT_EQ(bad_setting.exit_code, 1);
    EXPECT_THAT(bad_setting.errors, HasSubstr("did you mean \"debug\"?"));
    const Outcome no_program = run_program(NEXAR_COMMAND, {"run", "-n", "2"}, environment());
    EXPECT_EQ(no_program.exit_code, 2);
    EXPECT_THAT(no_program.errors, HasSubstr("nexar run -n 4 -- ./program"));
}

TEST_F(RunCommand, error_names_a_program_that_cannot_be_started) {
    const Outcome outcome =
        run_program(NEXAR_COMMAND, {"run", "-n", "2", "--", "./no-such-program"}, environment());
    EXPECT_EQ(outcome.exit_code, 127);
    EXPECT_THAT(outcome.errors, HasSubstr("cannot be started: ./no-such-program: No such file"));
}

TEST_F(RunCommand, exit_code_is_that_of_the_first_failure) {
    const Outcome outcome =
        run({"-n", "3"}, "if [ $NEXAR_RANK = 1 ]; then exit 42; else exec sleep 1000; fi");
    EXPECT_EQ(outcome.exit_code, 42);
    EXPECT_EQ(outcome.errors,
              "nexar run: rank 1 exited with code 42; the others get SIGTERM, and SIGKILL after "
              "10s\n");
}

TEST_F(RunCommand, crash_is_reported_with_rank_and_signal_after_the_last_output) {
    const Outcome outcome = run({"-n", "4"},
                                "ulimit -c 0; if [ $NEXAR_RANK = 2 ]; then echo last words >&2; "
                                "kill -SEGV $$; else exec sleep 1000; fi");
    EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
    EXPECT_THAT(outcome.errors,
                ContainsRegex("^\\[2\\] last words\nnexar run: rank 2 was killed by "
                              "signal 11 \\(SIGSEGV\\); the others"));
}

TEST_F(RunCommand, rank_that_outlives_the_grace_period_is_killed_and_named) {
    // Rank 0 fails once rank 2 ignores SIGTERM.
    const TempDirectory folder;
    const std::string deaf = folder.path() + "/deaf";
    const Outcome outcome =
        run({"-n", "3", "--grace", "300ms"},
            "case $NEXAR_RANK in 0) until [ -e " + deaf +
                " ]; do sleep 0.01; done; exit 3;; 1) exec sleep 1000;; esac; trap '' TERM; : >" +
                deaf + "; while :; do sleep 1000; done");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("rank 2 did not end within 300ms; sending SIGKILL"));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunCommand, standard_input_goes_to_rank_0_only) {
    auto program = start({"-n", "2"}, "cat; echo end");
    ASSERT_TRUE(program->writes("[1] end\n"));
    program->type("a line\n");
    ASSERT_TRUE(program->writes("[0] a line\n"));
    program->close_input();
    EXPECT_EQ(program->wait(), 0);
    EXPECT_THAT(program->output(), Not(HasSubstr("[1] a line")));
}

TEST_F(RunCommand, signals_reach_every_rank_and_its_children) {
    auto program = start({"-n", "3"},
                         "trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo hup; exit 0' "
                         "HUP; echo ready; while :; do sleep 1000 & wait; done");
    ASSERT_TRUE(program->writes("ready\n", 3));
    program->send(SIGUSR1);
    EXPECT_TRUE(program->writes("usr1\n", 3));
    program->send(SIGUSR2);
    EXPECT_TRUE(program->writes("usr2\n", 3));
    program->send(SIGHUP);
    EXPECT_TRUE(program->writes("hup\n", 3));
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunCommand, ranks_may_take_their_time_after_an_interrupt) {
    auto program = start({"-n", "2"},
                         "trap 'kill $!; echo saving; echo saved; exit 0' INT; echo ready; "
                         "sleep 1000 & wait");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGINT);
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_TRUE(program->writes("saved\n", 2));
}

TEST_F(RunCommand, second_interrupt_kills) {
    auto program = start({"-n", "2"},
                         "trap 'echo never' INT; trap '' TERM; echo ready; "
                         "while :; do sleep 1000 & wait; done");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGINT);
    ASSERT_TRUE(program->writes("never\n", 2));
    program->send(SIGINT);
    EXPECT_EQ(program->wait(), 128 + SIGINT);
    EXPECT_THAT(program->errors(), HasSubstr("received SIGINT again; killing all processes"));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunCommand, rank_killed_by_a_forwarded_signal_determines_the_exit_code) {
    auto program = start({"-n", "2"}, "echo ready; exec sleep 1000");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGTERM);
    EXPECT_EQ(program->wait(), 128 + SIGTERM);
    EXPECT_THAT(program->errors(),
                ContainsRegex("rank [01] was killed by signal 15 \\(SIGTERM\\)"));
}

TEST_F(RunCommand, ranks_that_ignore_a_forwarded_signal_are_killed_after_the_grace_period) {
    for (const int sent : {SIGTERM, SIGINT}) {
        auto program = start({"-n", "3", "--grace", "300ms"},
                             "trap '' TERM INT; echo ready; while :; do sleep 1000; done");
        ASSERT_TRUE(program->writes("ready\n", 3));
        program->send(sent);
        EXPECT_EQ(program->wait(), 128 + sent);
        EXPECT_EQ(program->errors(),
                  "nexar run: rank 0, rank 1, rank 2 did not end within 300ms; sending SIGKILL\n");
        EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
    }
}

TEST_F(RunCommand, rank_that_exits_while_others_run_is_reported_after_a_moment) {
    const TempDirectory folder;
    const std::string reported = folder.path() + "/reported";
    auto program = start({"-n", "4"}, "[ $NEXAR_RANK = 2 ] && exit 0; until [ -e " + reported +
                                          " ]; do sleep 0.02; done");
    EXPECT_TRUE(program->writes(
        "nexar run: rank 2 exited with code 0 while ranks 0, 1 and 3 are still running\n"));
    std::ofstream(reported) << "yes";
    EXPECT_EQ(program->wait(), 0);
    EXPECT_EQ(program->errors(),
              "nexar run: rank 2 exited with code 0 while ranks 0, 1 and 3 are still running\n");
}

TEST_F(RunCommand, failure_after_an_early_exit_is_reported_with_that_exit) {
    const TempDirectory folder;
    const std::string gone = folder.path() + "/gone";
    const Outcome outcome =
        run({"-n", "3"}, "case $NEXAR_RANK in 1) (sleep 0.1; : >" + gone +
                             ") & exit 0;; 2) until [ -e " + gone +
                             " ]; do sleep 0.02; done; exit 7;; esac; exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 7);
    EXPECT_EQ(outcome.errors,
              "nexar run: rank 2 exited with code 7; the others get SIGTERM, and SIGKILL after "
              "10s\nnexar run: rank 1 had exited with code 0 before that\n");
}

TEST_F(RunCommand, number_of_ranks_may_be_given_as_for_mpirun) {
    const auto output_of = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "run");
        const Outcome outcome = run_program(NEXAR_COMMAND, std::move(arguments), environment());
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        return sorted_lines(outcome.output);
    };
    EXPECT_THAT(output_of({"-np", "3", "--", "echo", "a"}), ElementsAre("[0] a", "[1] a", "[2] a"));
    EXPECT_THAT(output_of({"-np", "2", "echo", "a"}), ElementsAre("[0] a", "[1] a"));
    EXPECT_THAT(output_of({"--np", "2", "echo", "a"}), ElementsAre("[0] a", "[1] a"));
    EXPECT_THAT(output_of({"--env", "A=b", "--grace", "3s", "-np", "2", "echo", "a"}),
                ElementsAre("[0] a", "[1] a"));
    EXPECT_THAT(output_of({"-n", "1", "echo", "-np", "5"}), ElementsAre("[0] -np 5"))
        << "this option belongs to the program";
    EXPECT_THAT(output_of({"-n", "1", "--env", "X=-np", "sh", "-c", "echo $X"}),
                ElementsAre("[0] -np"));
}

TEST_F(RunCommand, signal_ignored_before_the_start_stays_ignored) {
    // If SIGHUP counted, the second signal would kill.
    const Outcome outcome = run_program(
        "/bin/sh",
        {"-c",
         "trap '' HUP; export LAUNCHER=$$; exec \"$0\" run -n 1 -- sh -c 'trap \"echo "
         "ended; exit 0\" TERM; kill -HUP $LAUNCHER; kill -TERM $LAUNCHER; while :; do sleep 1000 "
         "& "
         "wait; done'",
         NEXAR_COMMAND},
        environment());
    EXPECT_EQ(outcome.output, "[0] ended\n") << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(RunCommand, run_ends_when_the_reader_of_its_output_goes_away) {
    auto program = start({"-n", "2"}, "while :; do echo more; done");
    ASSERT_TRUE(program->writes("more\n", 100));
    program->close_output();
    EXPECT_EQ(program->wait(), 128 + SIGPIPE);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunCommand, lines_of_fast_writers_are_neither_mixed_nor_lost) {
    constexpr int kRanks = 4;
    constexpr int kLines = 5000;
    const Outcome outcome =
        run({"-n", std::to_string(kRanks)},
            "awk -v r=$NEXAR_RANK -v n=5000 'BEGIN { for (i = 0; i < n; i++) { "
            "s = sprintf(\"%*s\", (i * 37 + r * 11) % 400, \"\"); gsub(/ /, r, s); "
            "print i \":\" s > (i % 2 ? \"/dev/stderr\" : \"/dev/stdout\") } }'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors.substr(0, 1000);
    std::map<int, std::array<int, 2>> next;
    for (int rank = 0; rank < kRanks; ++rank) next[rank] = {0, 1};
    for (const int stream : {0, 1}) {
        std::istringstream lines(stream == 0 ? outcome.output : outcome.errors);
        for (std::string line; std::getline(lines, line);) {
            const int rank = line.at(1) - '0';
            ASSERT_TRUE(next.contains(rank)) << line;
            int& wanted = next[rank][static_cast<std::size_t>(stream)];
            const auto length = static_cast<std::size_t>((wanted * 37 + rank * 11) % 400);
            const std::string filling(length, static_cast<char>('0' + rank));
            ASSERT_EQ(line,
                      "[" + std::to_string(rank) + "] " + std::to_string(wanted) + ":" + filling);
            wanted += 2;
        }
    }
    for (const auto& [rank, wanted] : next) {
        EXPECT_THAT(wanted, ElementsAre(kLines, kLines + 1)) << "rank " << rank;
    }
}

TEST_F(RunCommand, long_line_is_forwarded_in_pieces) {
    const Outcome outcome = run({"-n", "1"}, "head -c 200000 /dev/zero | tr '\\0' x");
    std::istringstream lines(outcome.output);
    std::size_t total = 0;
    for (std::string line; std::getline(lines, line);) {
        ASSERT_THAT(line, ::testing::StartsWith("[0] x"));
        EXPECT_LE(line.size(), 65536U + 4);
        total += line.size() - 4;
    }
    EXPECT_EQ(total, 200000U);
}

TEST_F(RunCommand, ranks_inherit_no_descriptor_of_the_launcher) {
    // The descriptors that the test itself inherited, and the directory that ls reads, are
    // expected.
    const std::string script = "ls /proc/self/fd | tr '\\n' ' '; echo";
    const std::string alone = run_program("/bin/sh", {"-c", script}, environment()).output;
    EXPECT_EQ(run({"-n", "1"}, script).output, "[0] " + alone);
    EXPECT_THAT(sorted_lines(run({"-n", "3"}, script).output + "[3] " + alone),
                ElementsAre("[0] " + trimmed(alone), "[1] " + trimmed(alone),
                            "[2] " + trimmed(alone), "[3] " + trimmed(alone)));
}

TEST_F(RunCommand, processes_left_behind_by_ranks_are_ended) {
    const Outcome outcome = run(
        {"-n", "2"}, "setsid sleep 1000 & (setsid setsid sleep 1000 >/dev/null 2>&1 &); exit 0");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, HasSubstr("left processes behind"));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

}  // namespace
}  // namespace nexar
