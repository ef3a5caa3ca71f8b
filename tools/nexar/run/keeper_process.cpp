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
        const std::string_view join(message.data() + sizeof command,
                                    static_cast<std::size_t>(size) - sizeof command);
        switch (command.kind) {
            case Command::Kind::start:
                start(join);
                ::explicit_bzero(message.data(), message.size());
                break;
            case Command::Kind::restart:
                restart(command.unit, command.number, join);
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
            units_.push_back(-1);
            start_one(unit, plan_.units[unit], join);
            if (plan_.units[unit].restarts) continue;
            for (const int descriptor : {plan_.units[unit].output, plan_.units[unit].errors}) {
                if (descriptor > STDERR_FILENO) ::close(descriptor);
            }
        }
        started_ = true;
    }

    void start_one(std::uint32_t unit, const UnitPlan& plan, std::string_view join) {
        const pid_t keeper = ::getpid();
        const pid_t child = ::fork();
        if (child == 0) become_unit(unit, plan, join, keeper);
        units_[unit] = child;
        if (child > 0) {
            ::setpgid(child, child);  // the child does the same; the first one wins
            return;
        }
        tell({.kind = Report::Kind::not_started, .unit = unit, .value = errno});
        tell({.kind = Report::Kind::ended,
              .unit = unit,
              .value = W_EXITCODE(kExitUnableToStart, 0)});
    }

    void restart(std::uint32_t unit, std::uint32_t number, std::string_view join) {
        if (killing_ || unit >= units_.size() || units_[unit] > 0) return;
        UnitPlan plan = plan_.units[unit];
        // The new process joins a cluster that has formed: the seed chooses its rank, and nothing
        // that another launcher said about the old one applies.
        std::erase_if(plan.environment, [](const std::string& variable) {
            return variable.starts_with("NEXAR_RANK=") || variable.starts_with("NEXAR_LAUNCHER=");
        });
        plan.environment.emplace_back("NEXAR_LAUNCHER=none");
        plan.environment.push_back("NEXAR_RESTARTED=" + std::to_string(number));
        plan.input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        said_alone_ = false;
        start_one(unit, plan, join);
        if (plan.input >= 0) ::close(plan.input);
    }

    /// Runs in the child.
    [[noreturn]] void become_unit(std::uint32_t unit, UnitPlan plan, std::string_view join,
                                  pid_t keeper) const {
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
            siginfo_t info{};
            if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
            const pid_t child = info.si_pid;
            if (child == 0) return;
            const auto unit = std::ranges::find(units_, child);
            // Before the wait: until then the group cannot be another one of the same number.
            const bool failed = info.si_code != CLD_EXITED || info.si_status != 0;
            if (plan_.kills_groups && failed && unit != units_.end()) ::kill(-child, SIGKILL);
            int status = 0;
            ::waitpid(child, &status, 0);
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
