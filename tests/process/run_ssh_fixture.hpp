#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "process/run_fixture.hpp"
#include "support/temp_directory.hpp"

namespace nexar {

/// A network namespace in which programs started with in() run. The destructor kills every process
/// in it.
class Network {
public:
    Network() : holder_("/usr/bin/unshare", {"-n", "/bin/sleep", "1000"}, {"PATH=/usr/bin:/bin"}) {
        const SteadyClock clock;
        const TimePoint deadline = clock.now() + std::chrono::seconds(10);
        while (name() == name_of("self") && clock.now() < deadline) std::this_thread::yield();
    }
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    ~Network() {
        const std::string own = name();
        if (own.empty() || own == name_of("self")) return;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
            const std::string id = entry.path().filename().string();
            if (id.find_first_not_of("0123456789") != std::string::npos) continue;
            if (std::stoi(id) != holder_.id() && name_of(id) == own) ::kill(std::stoi(id), SIGKILL);
        }
    }

    bool works() const { return !name().empty() && name() != name_of("self"); }
    std::string id() const { return std::to_string(holder_.id()); }

    /// The arguments of nsenter that run a command in this network.
    std::vector<std::string> in(std::vector<std::string> command) const {
        command.insert(command.begin(), {"-t", id(), "-n", "--"});
        return command;
    }

private:
    static std::string name_of(const std::string& process) {
        std::error_code error;
        return std::filesystem::read_symlink("/proc/" + process + "/ns/net", error).string();
    }
    std::string name() const { return name_of(id()); }

    RunningProgram holder_;
};

/// `nexar run` in one network, with an sshd in each of two others: real ssh over cables that a test
/// can cut. Host a is 10.77.0.2, host b is 10.77.0.3. Host filtered, 10.77.0.9, loses every packet;
/// host refused has no sshd.
class RunSsh : public RunFixture {
protected:
    static constexpr const char* kEnter = "/usr/bin/nsenter";

    void SetUp() override {
        for (const char* program : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"}) {
            if (::access(program, X_OK) != 0) {
                GTEST_SKIP() << program
                             << " is missing; scripts/setup.sh installs openssh-server and -client";
            }
        }
        for (auto& network : networks_) network = std::make_unique<Network>();
        if (::geteuid() != 0 || !networks_[0]->works() || !networks_[2]->works()) {
            GTEST_SKIP() << "this user may not create network namespaces; run as root";
        }
        if (!lay_cables()) GTEST_SKIP() << "cannot create a bridge; is iproute2 installed?";
        write_configuration();
        ::mkdir("/run/sshd", 0755);  // sshd insists on this empty directory
        for (std::size_t host : {1U, 2U}) {
            sshd_.push_back(std::make_unique<RunningProgram>(
                kEnter,
                networks_.at(host)->in({"/usr/sbin/sshd", "-D", "-e", "-f", file("sshd_config")}),
                std::vector<std::string>{"PATH=" + path_}));
            ASSERT_TRUE(sshd_.back()->writes("Server listening")) << sshd_.back()->errors();
        }
    }

    std::unique_ptr<RunningProgram> launch(std::vector<std::string> arguments,
                                           const std::string& script) const {
        auto command = command_line(std::move(arguments), script);
        if (std::ranges::find(command, "--remote-nexar") == command.end()) {
            command.insert(command.begin() + 1, {"--remote-nexar", NEXAR_COMMAND});
        }
        command.insert(command.begin(), NEXAR_COMMAND);
        return std::make_unique<RunningProgram>(
            kEnter, networks_[0]->in(std::move(command)),
            std::vector<std::string>{"HOME=/nowhere", "PATH=" + folder_.path() + ":" + path_,
                                     mark()});
    }

    /// Pulls the cable of host a.
    void cut() const { ASSERT_TRUE(in_network(0, "ip link set port1 down")); }

    static constexpr const char* kSilentScript =
        "trap '' TERM HUP PIPE; echo ready; while :; do sleep 1000; done";

    /// Cuts off a host while its program does not communicate.
    void lose_host(const std::string& timeout, Duration within) {
        auto program = launch(
            {"-n", "3", "--host", "localhost:1,a:2", "--lost-after", timeout, "--grace", "100ms"},
            kSilentScript);
        ASSERT_TRUE(program->writes("ready\n", 3)) << program->errors();
        const SteadyClock clock;
        const TimePoint start = clock.now();
        cut();
        ASSERT_TRUE(program->writes("nexar run: the connection to host a (ranks 1 to 2) is lost"))
            << program->errors();
        EXPECT_LT(clock.now() - start, within);
        EXPECT_EQ(program->wait(), 255);
        EXPECT_EQ(wait_for_processes(mark(), 0), 0U) << "remote ranks are left";
        EXPECT_LT(clock.now() - start, within + std::chrono::seconds(2));
    }

    /// The host notices the loss of the launcher only by its silence.
    void lose_launcher(const std::string& timeout, Duration within) {
        auto program = launch({"-n", "2", "--host", "a:2", "--lost-after", timeout}, kSilentScript);
        ASSERT_TRUE(program->writes("ready\n", 2)) << program->errors();
        const SteadyClock clock;
        const TimePoint start = clock.now();
        cut();
        program->send(SIGKILL);
        EXPECT_EQ(program->wait(), 128 + SIGKILL);
        EXPECT_GT(processes_with(mark()).size(), 0U) << "the host cannot know yet";
        EXPECT_EQ(wait_for_processes(mark(), 0), 0U);
        EXPECT_LT(clock.now() - start, within);
    }

    void meet_a_filtered_port(const std::string& timeout, Duration within) {
        const SteadyClock clock;
        const TimePoint start = clock.now();
        auto program = launch({"-n", "2", "--host", "localhost,filtered", "--lost-after", timeout},
                              "exec sleep 1000");
        EXPECT_EQ(program->wait(), 255);
        EXPECT_LT(clock.now() - start, within);
        EXPECT_NE(program->errors().find(
                      "nexar run: ssh could not connect or log in to host filtered (rank 1)"),
                  std::string::npos)
            << program->errors();
    }

    bool in_network(std::size_t network, const std::string& command) const {
        RunningProgram program(kEnter, networks_.at(network)->in({"/bin/sh", "-ec", command}),
                               {"PATH=/usr/sbin:/sbin:" + path_});
        return program.wait() == 0;
    }

private:
    std::string file(const char* name) const { return folder_.path() + "/" + name; }

    bool lay_cables() const {
        bool laid = in_network(0,
                               "ip link set lo up; ip link add bridge0 type bridge; "
                               "ip address add 10.77.0.1/24 dev bridge0; ip link set bridge0 up");
        for (std::size_t host = 1; laid && host < networks_.size(); ++host) {
            const std::string number = std::to_string(host);
            laid = in_network(0, "ip link add port" + number + " type veth peer name cable netns " +
                                     networks_.at(host)->id() + "; ip link set port" + number +
                                     " master bridge0 up") &&
                   in_network(host, "ip link set lo up; ip address add 10.77.0." +
                                        std::to_string(host + 1) +
                                        "/24 dev cable; ip link set cable up");
        }
        // Last, because the bridge takes over the address of a cable and then forgets its
        // neighbours.
        return laid && in_network(0, "ip neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev bridge0");
    }

    void write_configuration() const {
        for (const char* key : {"host_key", "user_key"}) {
            ASSERT_EQ(run_program("/usr/bin/ssh-keygen",
                                  {"-q", "-t", "ed25519", "-N", "", "-f", file(key)}, {})
                          .exit_code,
                      0);
        }
        std::filesystem::copy_file(file("user_key.pub"), file("authorized_keys"));
        // SHLVL keeps bash from running the user's .bashrc, which may be slow, or take a lock that
        // a test would leave behind when it kills it.
        std::ofstream(file("sshd_config"))
            << "Port 22\nHostKey " << file("host_key") << "\nAuthorizedKeysFile "
            << file("authorized_keys")
            << "\nPidFile none\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n"
               "PasswordAuthentication no\nUseDNS no\nSetEnv SHLVL=1 "
            << mark() << "\n";
        std::ofstream(file("ssh_config"))
            << "Host a\n HostName 10.77.0.2\nHost b\n HostName 10.77.0.3\n"
               "Host refused\n HostName 10.77.0.1\nHost filtered\n HostName 10.77.0.9\n"
               "Host *\n StrictHostKeyChecking no\n IdentitiesOnly yes\n IdentityFile "
            << file("user_key") << "\n UserKnownHostsFile " << file("known_hosts") << "\n";
        std::ofstream(file("ssh"))
            << "#!/bin/sh\nexec /usr/bin/ssh -F " << file("ssh_config") << " \"$@\"\n";
        std::filesystem::permissions(file("ssh"), std::filesystem::perms::owner_all);
    }

    TempDirectory folder_;
    std::array<std::unique_ptr<Network>, 3> networks_;  // the launcher's, a's and b's
    std::vector<std::unique_ptr<RunningProgram>> sshd_;
};

}  // namespace nexar
