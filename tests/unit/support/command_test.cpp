#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "process/program.hpp"
#include "udp_host.hpp"

namespace nexar::udp_fault {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Outcome run(std::vector<std::string> arguments) {
    return run_program(NEXAR_UDP_FAULT, std::move(arguments), {});
}

/// The running command; its output is read line by line.
class Running {
public:
    explicit Running(std::vector<std::string> arguments) {
        std::array<int, 2> pipe{};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
        arguments.insert(arguments.begin(), NEXAR_UDP_FAULT);
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        std::array<char*, 1> environment{};
        const int failed =
            ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
        posix_spawn_file_actions_destroy(&actions);
        ::close(pipe[1]);
        output_ = ::fdopen(pipe[0], "r");
        if (failed != 0 || output_ == nullptr) throw std::runtime_error("cannot run udp_fault");
    }
    ~Running() {
        if (pid_ > 0) stop(SIGKILL);
        std::fclose(output_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    std::string line() {
        std::string text;
        for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
            text += static_cast<char>(c);
        }
        return text;
    }

    /// Returns the exit code, or -1 if the signal killed it.
    int stop(int signal) {
        int status = 0;
        ::kill(pid_, signal);
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    pid_t pid_ = -1;
    std::FILE* output_ = nullptr;
};

/// "... listening on ADDRESS, forwarding ..."
Address listening(const std::string& line) {
    const std::string before = "listening on ";
    const std::size_t at = line.find(before) + before.size();
    return *Address::parse(line.substr(at, line.find(',', at) - at));
}

TEST(UdpFaultCommand, forwards_with_faults_and_prints_statistics) {
    for (const int signal : {SIGTERM, SIGINT}) {
        UdpHost server;
        UdpHost client;
        Running command({"--to", describe(server.address()), "--seed", "42", "--down-drop", "1",
                         "--duplicate", "1", "--down-duplicate", "0"});
        const std::string first = command.line();
        EXPECT_THAT(first, AllOf(HasSubstr("forwarding to " + describe(server.address())),
                                 HasSubstr("seed 42")));
        client.send(listening(first), "hello");
        const auto got = server.receive();
        ASSERT_TRUE(got.has_value());
        EXPECT_EQ(got->text, "hello");
        EXPECT_EQ(server.receive_text(), "hello");
        EXPECT_EQ(command.stop(signal), 0);
        EXPECT_EQ(command.line(), "to target: received 1, delivered 2, duplicated 1");
        EXPECT_EQ(command.line(), "to client: received 0, delivered 0");
    }
}

TEST(UdpFaultCommand, prints_periodic_statistics_and_its_own_seed) {
    UdpHost server;
    Running command({"--to", describe(server.address()), "--stats", "0.01"});
    EXPECT_THAT(command.line(), HasSubstr(", seed "));
    EXPECT_EQ(command.line(), "to target: received 0, delivered 0");
    EXPECT_EQ(command.line(), "to client: received 0, delivered 0");
    EXPECT_EQ(command.stop(SIGTERM), 0);
}

TEST(UdpFaultCommand, help_explains_every_fault) {
    const Outcome help = run({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const char* flag : {"--listen",
                             "--to",
                             "--seed",
                             "--stats",
                             "--rebind-after",
                             "--rebind-every",
                             "--rebind-address",
                             "--queue",
                             "--drop ",
                             "--drop-run",
                             "--burst ",
                             "--burst-min",
                             "--burst-max",
                             "--duplicate",
                             "--reorder ",
                             "--reorder-packets",
                             "--reorder-time",
                             "--delay",
                             "--jitter",
                             "--corrupt ",
                             "--corrupt-bits",
                             "--truncate",
                             "--blackhole-after",
                             "--blackhole-lasts",
                             "--blackhole-every",
                             "--largest",
                             "--rate ",
                             "--rate-queue",
                             "--up-NAME",
                             "--down-NAME"}) {
        EXPECT_THAT(help.output, HasSubstr(flag));
    }
}

TEST(UdpFaultCommand, explains_a_bad_command_line) {
    const auto expect_usage_error = [](std::vector<std::string> more, const std::string& text) {
        std::vector<std::string> arguments = {"--to", "127.0.0.1:9"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = run(arguments);
        EXPECT_EQ(outcome.exit_code, 2);
        EXPECT_THAT(outcome.errors, HasSubstr(text));
        EXPECT_EQ(outcome.output, "");
    };
    expect_usage_error({"--drop", "often"}, "--drop: \"often\" is not a number");
    expect_usage_error({"--up-drop", "1.5"}, "to_target: drop.probability is 1.5; allowed:");
    expect_usage_error({"--down-delay", "5"}, "--down-delay: \"5\" has no unit");
    expect_usage_error({"--burst-max", "99999999999"}, "is not a number from 0 to 4294967295");
    expect_usage_error({"--rate", "fast"}, "--rate: \"fast\" does not start with a number");
    expect_usage_error({"--listen", "here"}, "--listen: \"here\" is not an address with a port");
    expect_usage_error({"--rebind-address", "nowhere"}, "--rebind-address: \"nowhere\"");
    expect_usage_error({"--stats", "0"}, "--stats");
    expect_usage_error({"--dorp", "0.1"}, "--dorp");
    EXPECT_EQ(run({}).exit_code, 2);
    EXPECT_THAT(run({}).errors, HasSubstr("--to is required"));
}

TEST(UdpFaultCommand, fails_when_the_port_is_taken) {
    UdpHost taken;
    const Outcome outcome = run({"--to", "127.0.0.1:9", "--listen", describe(taken.address())});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("cannot bind UDP " + describe(taken.address())));
}

}  // namespace
}  // namespace nexar::udp_fault
