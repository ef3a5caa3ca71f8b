// `nexar run --host` with an ssh that runs the command on this machine: real processes, no network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/run_hosts_fixture.hpp"

namespace nexar {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(RunHosts, ranks_are_distributed_over_the_hosts_in_order) {
    const Outcome outcome = run({"-n", "5", "--host", "alpha,beta"},
                                "echo $HOST_NAME $NEXAR_RANK/$NEXAR_WORLD_SIZE "
                                "$NEXAR_LOCAL_RANK/$NEXAR_LOCAL_SIZE");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(sorted_lines(outcome.output),
                ElementsAre("[0] alpha 0/5 0/3", "[1] alpha 1/5 1/3", "[2] alpha 2/5 2/3",
                            "[3] beta 3/5 0/2", "[4] beta 4/5 1/2"));
}

TEST_F(RunHosts, slots_set_the_number_of_ranks_and_localhost_needs_no_ssh) {
    const Outcome outcome = run({"--host", "localhost:1,beta:2"}, "echo ${HOST_NAME:-here}");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(sorted_lines(outcome.output), ElementsAre("[0] here", "[1] beta", "[2] beta"));
    EXPECT_EQ(content(folder_ / "arguments"),
              "-T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 "
              "-o ServerAliveCountMax=2 -- beta exec nexar run-part\n");
}

TEST_F(RunHosts, options_do_not_override_the_configuration_of_ssh) {
    std::ofstream(folder_ / "config") << "host beta\nconnecttimeout 77\nserveraliveinterval 88\n";
    EXPECT_EQ(run({"-n", "1", "--host", "beta"}, "exit 0").exit_code, 0);
    EXPECT_EQ(content(folder_ / "arguments"), "-T -o BatchMode=yes -- beta exec nexar run-part\n");
    fs::remove(folder_ / "arguments");
    std::ofstream(folder_ / "config") << "connecttimeout none\nserveraliveinterval 0\n";
    EXPECT_EQ(run({"-n", "1", "--host", "beta", "--lost-after", "6s"}, "exit 0").exit_code, 0);
    EXPECT_EQ(content(folder_ / "arguments"),
              "-T -o BatchMode=yes -o ConnectTimeout=4 -o ServerAliveInterval=2 "
              "-o ServerAliveCountMax=2 -- beta exec nexar run-part\n");
}

TEST_F(RunHosts, early_exit_of_a_remote_rank_is_reported) {
    const fs::path reported = folder_ / "reported";
    auto program = start({"-n", "4", "--host", "localhost,beta"},
                         "[ $NEXAR_RANK = 2 ] && exit 0; until [ -e " + reported.string() +
                             " ]; do sleep 0.02; done; echo end");
    EXPECT_TRUE(program->writes(
        "nexar run: rank 2 exited with code 0 while ranks 0, 1 and 3 are still running\n"));
    std::ofstream(reported) << "yes";
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_THAT(sorted_lines(program->output()), ElementsAre("[0] end", "[1] end", "[3] end"))
        << "messages between launcher and part must not be shown";
}

TEST_F(RunHosts, remote_rank_that_exits_before_it_joins_ends_the_formation_at_once) {
    const Outcome outcome =
        run({"-n", "3", "--host", "localhost,beta", "--nexar-formation-timeout=1h"},
            "[ $NEXAR_RANK = 2 ] && { sleep 0.2; exit 0; }; exec " NEXAR_JOINING_RANK);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("the cluster cannot form: rank 2 exited with code 0 before it had "
                                "joined"),
                      testing::ContainsRegex("nexar run: rank 2 (had exited with code 0 before "
                                             "that|exited with code 0 while ranks? )")));
}

TEST_F(RunHosts, error_for_a_host_without_nexar_says_what_to_do) {
    const Outcome outcome =
        run({"-n", "2", "--host", "localhost,beta", "--remote-nexar", "/nowhere/nexar"},
            "exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 127);
    EXPECT_THAT(outcome.errors,
                HasSubstr("nexar run: host beta (rank 1) cannot run the command `/nowhere/nexar`: "
                          "install nexar there, or give its path with --remote-nexar; the others "
                          "get SIGTERM"));
}

TEST_F(RunHosts, host_that_runs_another_program_is_a_failure) {
    const Outcome outcome =
        run({"-n", "1", "--host", "beta", "--remote-nexar", "true"}, "echo never");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("nexar run: host beta (rank 0) exited with code 0 before "
                                          "it started a rank"));
}

TEST_F(RunHosts, program_that_exits_with_255_is_not_mistaken_for_ssh) {
    const Outcome outcome = run({"-n", "2", "--host", "beta"}, "exit 255");
    EXPECT_EQ(outcome.exit_code, 255);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("rank"), HasSubstr("exited with code 255"), Not(HasSubstr("ssh"))));
}

TEST_F(RunHosts, nothing_starts_without_ssh_on_this_machine) {
    const Outcome outcome = run_program(NEXAR_COMMAND, {"run", "-n", "1", "--host", "beta", "echo"},
                                        {"PATH=/nowhere", mark()});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("--host needs ssh"));
}

TEST_F(RunHosts, silent_host_is_lost_and_ends_its_own_ranks) {
    // This ssh keeps running but stops forwarding in both directions, as if a cable were pulled.
    write_script("ssh",
                 "[ \"$1\" = -G ] && exit\n"
                 "while [ \"$1\" != -- ]; do shift; done\n"
                 "mkfifo \"$0.in\" \"$0.out\"\n"
                 "setsid /bin/sh -c \"$3\" <\"$0.in\" >\"$0.out\" &\n"
                 "cat <\"$0.out\" & echo $! >\"$0.from\"; exec 3>\"$0.in\"\n"
                 "exec 4<&0; trap '' TERM; cat <&4 >&3 & echo $! >\"$0.to\"; exec sleep 1000\n");
    auto program = start({"-n", "2", "--host", "alpha", "--lost-after", "2s"},
                         "trap '' TERM HUP PIPE; echo ready; while :; do sleep 1000; done");
    ASSERT_TRUE(program->writes("ready\n", 2));
    for (const char* name : {"ssh.from", "ssh.to"}) {
        ::kill(std::stoi(content(folder_ / name)), SIGSTOP);
    }
    EXPECT_EQ(program->wait(), 255);
    EXPECT_THAT(program->errors(),
                HasSubstr("nexar run: the connection to host alpha (ranks 0 to 1) is lost: it has "
                          "been silent for 1600ms"));
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunHosts, host_with_quiet_ranks_is_not_lost) {
    // No rank writes anything for longer than a host may be silent. A shorter time would test how
    // busy this machine is.
    auto program =
        start({"-n", "2", "--host", "localhost,beta", "--lost-after", "3s"}, "sleep 3; echo end");
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_EQ(program->errors(), "");
    EXPECT_THAT(sorted_lines(program->output()), ElementsAre("[0] end", "[1] end"));
}

TEST_F(RunHosts, launcher_stopped_for_long_finds_its_ranks_alive) {
    const fs::path go = folder_ / "go";
    auto program =
        start({"-n", "2", "--host", "localhost,beta", "--lost-after", "3s"},
              "echo ready; until [ -e " + go.string() + " ]; do sleep 0.02; done; echo end");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGTSTP);
    const std::string status = "/proc/" + std::to_string(program->id()) + "/status";
    while (content(status).find("(stopped)") == std::string::npos) std::this_thread::yield();
    // This sleep waits for nothing: the test is about the length of the stop.
    std::this_thread::sleep_for(std::chrono::milliseconds(3300));
    std::ofstream(go) << "now";
    program->send(SIGCONT);
    EXPECT_EQ(program->wait(), 0) << program->errors();
    EXPECT_EQ(program->errors(), "");
    EXPECT_THAT(sorted_lines(program->output()),
                ElementsAre("[0] end", "[0] ready", "[1] end", "[1] ready"));
}

TEST_F(RunHosts, directory_settings_and_arguments_reach_remote_ranks_unchanged) {
    const std::string odd = "a b\t'\"$HOME`\xff\n";
    const Outcome outcome = run_program(
        NEXAR_COMMAND,
        {"run", "-n", "1", "--host", "beta", "--nexar-log-level=debug", "--env", "ODD=" + odd, "--",
         "/bin/sh", "-c",
         "pwd; printf %s \"$1\" | od -An -c; [ \"$ODD\" = \"$1\" ] && echo $NEXAR_LOG_LEVEL", "sh",
         odd},
        environment());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("[0] " + fs::current_path().string() + "\n"),
                                      HasSubstr("[0] debug\n")));
}

TEST_F(RunHosts, join_string_reaches_every_rank_and_appears_in_no_command_line) {
    // The shell must not exec: a process has no environment during exec, and the search for the
    // mark would miss it.
    auto program = start({"-n", "3", "--host", "localhost,beta"},
                         "trap 'kill $!; exit 143' TERM; echo ${NEXAR_JOIN%%@*}; "
                         "sleep 1000 & wait");
    ASSERT_TRUE(program->writes("] nexar1.", 3));
    const auto& output = program->output();
    const std::string secret = output.substr(output.find("nexar1.") + 40, 64);
    EXPECT_THAT(secret, testing::MatchesRegex("[0-9a-f]+"));
    int looked_at = 0;
    for (const pid_t pid : processes_with(mark())) {
        const std::string line = content("/proc/" + std::to_string(pid) + "/cmdline");
        EXPECT_EQ(line.find(secret), std::string::npos) << line;
        ++looked_at;
    }
    EXPECT_GE(looked_at, 7) << "launchers, keepers and ranks";
    EXPECT_EQ(content(folder_ / "arguments").find(secret), std::string::npos);
    program->send(SIGTERM);
    EXPECT_EQ(program->wait(), 128 + SIGTERM);
    EXPECT_EQ(program->errors().find(secret), std::string::npos);
}

TEST_F(RunHosts, crash_on_another_host_is_reported_and_ends_the_run) {
    const Outcome outcome =
        run({"-n", "4", "--host", "alpha,beta"},
            "ulimit -c 0; if [ $NEXAR_RANK = 3 ]; then kill -SEGV $$; fi; exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("nexar run: rank 3 was killed by signal 11 (SIGSEGV)"),
                      HasSubstr("nexar run: host beta (ranks 2 to 3) exited with code 139; the "
                                "others get SIGTERM")));
}

TEST_F(RunHosts, error_names_an_unreachable_host) {
    const Outcome outcome = run({"-n", "2", "--host", "alpha,unreachable"}, "exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 255);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("ssh: no route\n"),
                      HasSubstr("ssh could not connect or log in to host unreachable (rank 1); the "
                                "others get SIGTERM")));
}

TEST_F(RunHosts, signals_reach_remote_ranks) {
    auto program = start({"-n", "2", "--host", "alpha,beta"},
                         "trap 'echo usr1' USR1; trap 'kill $!; echo end; exit 0' TERM; "
                         "echo ready; while :; do sleep 1000 & wait; done");
    ASSERT_TRUE(program->writes("ready\n", 2));
    program->send(SIGUSR1);
    EXPECT_TRUE(program->writes("usr1\n", 2));
    program->send(SIGTERM);
    EXPECT_TRUE(program->writes("end\n", 2));
    EXPECT_EQ(program->wait(), 0) << program->errors();
}

TEST_F(RunHosts, killing_the_launcher_ends_remote_ranks) {
    auto program = start({"-n", "4", "--host", "alpha,beta"},
                         "(setsid setsid sleep 1000 </dev/null >/dev/null 2>&1 &); "
                         "trap '' TERM; echo ready; while :; do sleep 1000; done");
    ASSERT_TRUE(program->writes("ready\n", 4));
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunHosts, broken_connection_ends_remote_ranks) {
    // The part that this ssh starts runs in a session of its own and outlives ssh.
    write_script("ssh",
                 "[ \"$1\" = -G ] && exit\n"
                 "while [ \"$1\" != -- ]; do shift; done\n"
                 "exec 3<&0; mkfifo \"$0.in\"; setsid /bin/sh -c \"$3\" <\"$0.in\" & "
                 "echo $$ > \"$0.pid\"; exec cat <&3 >\"$0.in\"\n");
    auto program = start({"-n", "2", "--host", "alpha"},
                         "trap '' TERM HUP; echo ready; while :; do sleep 1000; done");
    ASSERT_TRUE(program->writes("ready\n", 2));
    ::kill(std::stoi(content(folder_ / "ssh.pid")), SIGKILL);
    EXPECT_NE(program->wait(), 0);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

}  // namespace
}  // namespace nexar
