// `nexar run` in a terminal: typed input, colours, Ctrl-C and Ctrl-Z.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "process/run_fixture.hpp"

namespace nexar {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kTerminalPatience = std::chrono::seconds(60);
constexpr char kCtrlC = '\x03';
constexpr char kCtrlD = '\x04';
constexpr char kCtrlZ = '\x1a';

/// A program in a pseudo-terminal that the test controls.
class Terminal {
public:
    Terminal(const std::string& path, std::vector<std::string> arguments,
             std::vector<std::string> environment) {
        arguments.insert(arguments.begin(), path);
        termios settings{};
        ::cfmakeraw(&settings);
        settings.c_lflag |= ISIG | ICANON;
        settings.c_cc[VINTR] = kCtrlC;
        settings.c_cc[VEOF] = kCtrlD;
        settings.c_cc[VSUSP] = kCtrlZ;
        id_ = ::forkpty(&master_, nullptr, &settings, nullptr);
        if (id_ != 0) return;
        std::vector<char*> argv;
        argv.reserve(arguments.size() + 1);
        for (std::string& text : arguments) argv.push_back(text.data());
        argv.push_back(nullptr);
        std::vector<char*> envp;
        envp.reserve(environment.size() + 1);
        for (std::string& text : environment) envp.push_back(text.data());
        envp.push_back(nullptr);
        ::execve(path.c_str(), argv.data(), envp.data());
        ::_exit(126);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal() {
        if (id_ > 0) {
            ::kill(id_, SIGKILL);
            ::waitpid(id_, nullptr, 0);
        }
        ::close(master_);
    }

    pid_t id() const { return id_; }
    const std::string& shown() const { return shown_; }

    void type(std::string_view text) const {
        EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    bool shows(std::string_view text) {
        const SteadyClock clock;
        const TimePoint deadline = clock.now() + kTerminalPatience;
        while (shown_.find(text) == std::string::npos) {
            if (clock.now() > deadline || !read_some()) return false;
        }
        return true;
    }

    /// The waitpid() status when the program ends or, with WUNTRACED, stops.
    int wait(int options = 0) {
        const SteadyClock clock;
        const TimePoint deadline = clock.now() + kTerminalPatience;
        int status = -1;
        while (::waitpid(id_, &status, WNOHANG | options) == 0 && clock.now() < deadline) {
            read_some();
        }
        if (!WIFSTOPPED(status)) id_ = -1;
        return status;
    }

private:
    bool read_some() {
        pollfd polled{.fd = master_, .events = POLLIN, .revents = 0};
        if (::poll(&polled, 1, 10) <= 0) return true;
        std::array<char, 4096> bytes{};
        const ssize_t n = ::read(master_, bytes.data(), bytes.size());
        if (n > 0) shown_.append(bytes.data(), static_cast<std::size_t>(n));
        return n > 0;
    }

    pid_t id_ = -1;
    int master_ = -1;
    std::string shown_;
};

class RunTerminal : public RunFixture {
protected:
    Terminal open(std::vector<std::string> arguments, const std::string& script,
                  const std::string& variable = "TERM=xterm") const {
        auto variables = environment();
        variables.push_back(variable);
        return Terminal(NEXAR_COMMAND, command_line(std::move(arguments), script), variables);
    }
};

TEST_F(RunTerminal, typed_input_and_its_end_go_to_rank_0) {
    Terminal terminal = open({"-n", "2"}, "cat; echo end");
    ASSERT_TRUE(terminal.shows("[1]\x1b[0m end\n"));
    terminal.type("a line\n");
    ASSERT_TRUE(terminal.shows("[0]\x1b[0m a line\n"));
    terminal.type(std::string(1, kCtrlD));
    EXPECT_TRUE(terminal.shows("[0]\x1b[0m end\n"));
    EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(RunTerminal, colours_can_be_turned_off) {
    Terminal terminal = open({"-n", "1"}, "echo plain", "NO_COLOR=1");
    EXPECT_TRUE(terminal.shows("[0] plain\n"));
    EXPECT_EQ(terminal.wait(), 0);
    EXPECT_THAT(terminal.shown(), Not(HasSubstr("\x1b")));
}

TEST_F(RunTerminal, interrupt_reaches_every_rank_exactly_once) {
    Terminal terminal = open({"-n", "2"},
                             "n=0; trap 'n=$((n+1)); echo int' INT; trap 'echo had $n; exit 0' "
                             "USR1; echo ready; sleep 1000 & while :; do wait; done",
                             "TERM=dumb");
    ASSERT_TRUE(terminal.shows("[0] ready\n"));
    ASSERT_TRUE(terminal.shows("[1] ready\n"));
    terminal.type(std::string(1, kCtrlC));
    ASSERT_TRUE(terminal.shows("[0] int\n"));
    ASSERT_TRUE(terminal.shows("[1] int\n"));
    ::kill(terminal.id(), SIGUSR1);
    EXPECT_TRUE(terminal.shows("[0] had 1\n")) << terminal.shown();
    EXPECT_TRUE(terminal.shows("[1] had 1\n")) << terminal.shown();
    EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(RunTerminal, suspended_run_continues_after_sigcont) {
    Terminal terminal =
        open({"-n", "1"}, "trap 'echo continued; exit 0' CONT; echo ready; while :; do :; done",
             "TERM=dumb");
    ASSERT_TRUE(terminal.shows("[0] ready\n"));
    terminal.type(std::string(1, kCtrlZ));
    const int status = terminal.wait(WUNTRACED);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
    ::kill(terminal.id(), SIGCONT);
    EXPECT_TRUE(terminal.shows("[0] continued\n"));
    EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace nexar
