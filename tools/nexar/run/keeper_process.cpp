#include "run/keeper_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "run/binding.hpp"
#include "run/process_tree.hpp"

namespace nexar::run {

namespace {

constexpr auto kLastWait = std::chrono::seconds(60);
constexpr int kExitUnableToStart = 127;

/// The null-terminated list that exec takes; valid as long as `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

/// Makes `descriptor` the standard descriptor `at`, even if it already has that number.
bool place(int descriptor, int at) {
    if (descriptor == at) return ::fcntl(at, F_SETFD, 0) == 0;
    return ::dup2(descriptor, at) == at;
}

class KeeperProcess {
public:
    KeeperProcess(const KeeperPlan& plan, int line) : plan_(plan), line_(line) {}

    [[noreturn]] void run() {
        prepare();
        while (true) {
            std::array<pollfd, 2> polled{pollfd{.fd = line_, .events = POLLIN, .revents = 0},
                                         pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
            // While killing, poll: orphans of killed processes become children without a signal.
            ::poll(polled.data(), polled.size(), killing_ ? 5 : -1);
            if (polled[1].revents != 0) drain_signals();
            if (polled[0].revents != 0) obey();
            if (killing_) kill_children();
            reap();
        }
    }

private:
    void prepare() {
        // Its own group, so that killing the launcher's whole group spares the keeper.
        ::setpgid(0, 0);
        ::prctl(PR_SET_NAME, "nexar-keeper");
        sigset_t all;
        sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        sigset_t child_ended;
        sigemptyset(&child_ended);
        sigaddset(&child_ended, SIGCHLD);
        signals_ = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
        if (!become_subreaper() || signals_ < 0) ::_exit(kExitUnableToStart);
    }

    void drain_signals() const {
        signalfd_siginfo signal{};
        while (::read(signals_, &signal, sizeof signal) > 0) {
        }
    }

    void obey() {
        std::array<char, sizeof(Command) + kMaxJoinBytes> message{};
        const ssize_t size = ::recv(line_, message.data(), message.size(), MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < ssize_t{sizeof(Command)}) abandon();
        Command command;
        std::memcpy(&command, message.data(), sizeof command);
        switch (command.kind) {
            case Command::Kind::start:
                start({message.data() + sizeof command,
                       static_cast<std::size_t>(size) - sizeof command});
                ::explicit_bzero(message.data(), message.size());
                break;
            case Command::Kind::signal_units:
                signal_units(command.signal);
                break;
            case Command::Kind::signal_strays:
                for (const pid_t child : children()) {
                    if (std::ranges::find(units_, child) == units_.end()) {
                        ::kill(child, command.signal);
                    }
                }
                break;
            case Command::Kind::kill_unit:
                if (command.unit < units_.size() && units_[command.unit] > 0) {
                    ::kill(-units_[command.unit], SIGKILL);
                }
                break;
            case Command::Kind::kill_all:
                killing_ = true;
                break;
        }
    }

    /// The launcher is gone.
    [[noreturn]] static void abandon() {
        kill_descendants(SteadyClock().now() + kLastWait);
        ::_exit(0);
    }

    void start(std::string_view join) {
        for (std::uint32_t unit = 0; unit < plan_.units.size(); ++unit) {
            const UnitPlan& plan = plan_.units[unit];
            const pid_t keeper = ::getpid();
            const pid_t child = ::fork();
            if (child == 0) become_unit(unit, join, keeper);
            if (child < 0) {
                tell({.kind = Report::Kind::not_started, .unit = unit, .value = errno});
            } else {
                ::setpgid(child, child);  // the child does the same; the first one wins
            }
            units_.push_back(child);
            for (const int descriptor : {plan.output, plan.errors}) {
                if (descriptor > STDERR_FILENO) ::close(descriptor);
            }
        }
        started_ = true;
    }

    /// Runs in the child.
    [[noreturn]] void become_unit(std::uint32_t unit, std::string_view join, pid_t keeper) const {
        UnitPlan plan = plan_.units[unit];
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != keeper) ::_exit(kExitUnableToStart);
        if (plan.is_rank && !join.empty())
            plan.environment.push_back("NEXAR_JOIN=" + std::string(join));
        bind_to(plan.processors);
        const bool placed = place(plan.input, STDIN_FILENO) && place(plan.output, STDOUT_FILENO) &&
                            place(plan.errors, STDERR_FILENO);
        ::signal(SIGPIPE, SIG_DFL);
        ::sigprocmask(SIG_SETMASK, &plan_.signal_mask, nullptr);
        if (placed) {
            ::execvpe(plan.command[0].c_str(), pointers(plan.command).data(),
                      pointers(plan.environment).data());
        }
        tell({.kind = Report::Kind::not_started, .unit = unit, .value = errno});
        ::_exit(kExitUnableToStart);
    }

    /// Signals whole process groups, as a terminal does.
    void signal_units(int signal) const {
        for (std::size_t unit = 0; unit < units_.size(); ++unit) {
            if (units_[unit] > 0 && plan_.units[unit].is_rank) ::kill(-units_[unit], signal);
        }
    }

    void kill_children() const {
        for (const pid_t child : children()) ::kill(child, SIGKILL);
    }

    void reap() {
        if (!started_) return;
        while (true) {
            int status = 0;
            const pid_t child = ::waitpid(-1, &status, WNOHANG);
            if (child == 0) return;
            if (child < 0) break;
            const auto unit = std::ranges::find(units_, child);
            if (unit == units_.end()) continue;
            *unit = -1;
            tell({.kind = Report::Kind::ended,
                  .unit = static_cast<std::uint32_t>(unit - units_.begin()),
                  .value = status});
        }
        if (errno != ECHILD || said_alone_) return;
        said_alone_ = true;
        tell({.kind = Report::Kind::alone});
    }

    void tell(const Report& report) const {
        // May block until the launcher reads; the launcher's death ends the wait.
        while (::send(line_, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR) {
        }
    }

    const KeeperPlan& plan_;
    int line_;
    int signals_ = -1;
    std::vector<pid_t> units_;  // -1: ended or not started
    bool started_ = false;
    bool killing_ = false;
    bool said_alone_ = false;
};

}  // namespace

void run_keeper(const KeeperPlan& plan, int line) {
    KeeperProcess(plan, line).run();
}

}  // namespace nexar::run
