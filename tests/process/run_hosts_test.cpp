// `nexar run --host` with an ssh that runs the command on this machine: real processes, no network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/run_fixture.hpp"
#include "support/temp_directory.hpp"

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

class RunHosts : public RunFixture {
protected:
    RunHosts() {
        // As sshd does: another shell runs the words behind the host, in another directory and
        // with few variables.
        write_script("ssh",
                     "echo \"$@\" >> " + (folder_ / "arguments").string() +
                         "\n"
                         "while [ \"$1\" != -- ]; do shift; done\n"
                         "[ \"$2\" = unreachable ] && { echo 'ssh: no route' >&2; exit 255; }\n"
                         "cd /; exec env -i PATH=\"$PATH\" HOST_NAME=\"$2\" " +
                         mark() + " /bin/sh -c \"$3\"\n");
        path_ = folder_.path() + ":" + fs::path(NEXAR_COMMAND).parent_path().string() + ":" + path_;
    }

    void write_script(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << text;
        fs::permissions(folder_ / name, fs::perms::owner_all);
    }

    TempDirectory folder_;
};

TEST_F(RunHosts, ranks_are_shared_out_over_the_hosts_in_order) {
    const Outcome outcome = run({"-n", "5", "--host", "alpha,beta"},
                                "echo $HOST_NAME $NEXAR_RANK/$NEXAR_WORLD_SIZE "
                                "$NEXAR_LOCAL_RANK/$NEXAR_LOCAL_SIZE");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(sorted_lines(outcome.output),
                ElementsAre("[0] alpha 0/5 0/3", "[1] alpha 1/5 1/3", "[2] alpha 2/5 2/3",
                            "[3] beta 3/5 0/2", "[4] beta 4/5 1/2"));
}

TEST_F(RunHosts, slots_say_how_many_and_localhost_needs_no_ssh) {
    const Outcome outcome = run({"--host", "localhost:1,beta:2"}, "echo ${HOST_NAME:-here}");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(sorted_lines(outcome.output), ElementsAre("[0] here", "[1] beta", "[2] beta"));
    EXPECT_EQ(content(folder_ / "arguments"), "-T -o BatchMode=yes -- beta exec nexar run-part\n");
}

TEST_F(RunHosts, directory_settings_and_arguments_travel_as_they_are) {
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

TEST_F(RunHosts, the_join_string_reaches_every_rank_and_stands_in_no_command_line) {
    // The shell that wrote stays: one that becomes another program has no environment meanwhile,
    // and is not found by its mark.
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

TEST_F(RunHosts, a_crash_over_there_is_reported_and_ends_the_rest) {
    const Outcome outcome =
        run({"-n", "4", "--host", "alpha,beta"},
            "ulimit -c 0; if [ $NEXAR_RANK = 3 ]; then kill -SEGV $$; fi; exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("nexar run: rank 3 died of signal 11 (SIGSEGV)"),
                      HasSubstr("nexar run: host beta (ranks 2 to 3) exited with code 139; the "
                                "others get SIGTERM")));
}

TEST_F(RunHosts, a_host_that_cannot_be_reached_is_named) {
    const Outcome outcome = run({"-n", "2", "--host", "alpha,unreachable"}, "exec sleep 1000");
    EXPECT_EQ(outcome.exit_code, 255);
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("ssh: no route\n"),
                                      HasSubstr("host unreachable (rank 1) exited with code 255")));
}

TEST_F(RunHosts, signals_reach_the_ranks_over_there) {
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

TEST_F(RunHosts, killing_the_launcher_ends_the_ranks_over_there) {
    auto program = start({"-n", "4", "--host", "alpha,beta"},
                         "(setsid setsid sleep 1000 </dev/null >/dev/null 2>&1 &); "
                         "trap '' TERM; echo ready; while :; do sleep 1000; done");
    ASSERT_TRUE(program->writes("ready\n", 4));
    program->send(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
    EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
}

TEST_F(RunHosts, a_connection_that_breaks_ends_the_ranks_over_there) {
    // This ssh leaves what it started to a process that is not its child.
    write_script("ssh",
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
