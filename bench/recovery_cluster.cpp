#include "recovery_cluster.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>

namespace nexar::bench {

namespace {

constexpr std::int64_t kPatience = 30'000'000'000;  // for one event
constexpr int kTokenUses = 100'000;

double milliseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-6;
}

SeedOptions options_of(int ranks, const std::string& link) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = ranks;
    options.settings = {{"link", link}};
    return options;
}

}  // namespace

RecoveryCluster::RecoveryCluster(int ranks, const std::string& link, std::uint64_t random_seed)
    : random_(random_seed),
      seed_(options_of(ranks, link)),
      join_("NEXAR_JOIN=" + seed_.create_token({.uses = kTokenUses})) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
    for (int i = 0; i < ranks; ++i) start();
    const std::int64_t deadline = monotonic_ns() + kPatience;
    for (int joined = 0; joined < ranks;) {
        const Notice notice = next(deadline, "the first world");
        if (notice.kind != Notice::Kind::joined) continue;
        find(notice.process).rank = notice.rank;
        ++joined;
    }
}

RecoveryCluster::~RecoveryCluster() {
    for (const Process& process : processes_) end(process);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
}

void RecoveryCluster::end(const Process& process) {
    ::kill(process.id, SIGKILL);
    ::waitpid(process.id, nullptr, 0);
}

RecoveryCluster::Process& RecoveryCluster::find(pid_t id) {
    const auto found = std::ranges::find(processes_, id, &Process::id);
    if (found == processes_.end()) throw std::runtime_error("a notice of an unknown process");
    return *found;
}

void RecoveryCluster::start() {
    static char program[] = "/proc/self/exe";
    std::string mode = kRankMode;
    char* const arguments[] = {program, mode.data(), nullptr};
    std::vector<char*> environment;
    for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
    environment.push_back(join_.data());
    environment.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t id = ::fork();
    if (id < 0) throw std::runtime_error("cannot start a process");
    if (id == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(3);
        ::dup2(pipe_[1], kNoticeDescriptor);
        ::fcntl(kNoticeDescriptor, F_SETFD, 0);  // if it already was this descriptor
        ::execve(program, arguments, environment.data());
        ::_exit(127);
    }
    processes_.push_back({.id = id});
}

Notice RecoveryCluster::next(std::int64_t deadline, const std::string& what) {
    const std::int64_t left = std::max<std::int64_t>(deadline - monotonic_ns(), 0);
    pollfd polled{.fd = pipe_[0], .events = POLLIN, .revents = 0};
    Notice notice;
    if (::poll(&polled, 1, static_cast<int>(left / 1'000'000)) <= 0 ||
        ::read(pipe_[0], &notice, sizeof notice) != sizeof notice) {
        throw std::runtime_error(fmt::format("{} took more than {} s; {}", what,
                                             kPatience / 1'000'000'000, seed_.status()));
    }
    if (notice.kind == Notice::Kind::trouble) {
        throw std::runtime_error(
            fmt::format("process {} during {}: {}", notice.process, what, notice.text.data()));
    }
    return notice;
}

Loss RecoveryCluster::kill() {
    return lose(SIGKILL);
}

Loss RecoveryCluster::stop() {
    return lose(SIGSTOP);
}

Loss RecoveryCluster::lose(int signal) {
    // Any moment between two steps or checkpoints.
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20'000));
    const auto chosen =
        processes_.begin() + static_cast<std::ptrdiff_t>(random_() % processes_.size());
    const Process victim = *chosen;
    processes_.erase(chosen);
    std::set<pid_t> unaware;
    std::set<pid_t> unrecovered;
    for (const Process& process : processes_) {
        unaware.insert(process.id);
        unrecovered.insert(process.id);
    }
    const std::string what = fmt::format("the loss of rank {} by signal {}", victim.rank, signal);
    const std::int64_t begun = monotonic_ns();
    ::kill(victim.id, signal);
    Loss loss;
    while (!unaware.empty() || !unrecovered.empty()) {
        const Notice notice = next(begun + kPatience, what);
        const double took = milliseconds(notice.at - begun);
        if (notice.kind == Notice::Kind::failed) {
            if (notice.rank != victim.rank) {
                throw std::runtime_error(
                    fmt::format("rank {} is listed as failed during {}", notice.rank, what));
            }
            if (unaware.erase(notice.process) != 0) loss.noticed = std::max(loss.noticed, took);
        }
        if (notice.kind == Notice::Kind::recovered &&
            notice.world == static_cast<int>(processes_.size()) &&
            unrecovered.erase(notice.process) != 0) {
            loss.reduced = std::max(loss.reduced, took);
        }
    }
    end(victim);
    return loss;
}

Growth RecoveryCluster::grow() {
    std::set<pid_t> waiting;
    for (const Process& process : processes_) waiting.insert(process.id);
    start();
    const pid_t joiner = processes_.back().id;
    waiting.insert(joiner);
    const std::int64_t deadline = monotonic_ns() + kPatience;
    Growth growth;
    std::string join_parts;
    while (!waiting.empty()) {
        const Notice notice = next(deadline, "a join");
        if (notice.kind == Notice::Kind::joined && notice.process == joiner) {
            processes_.back().rank = notice.rank;
            growth.join = milliseconds(notice.at - notice.value);
            join_parts = notice.text.data();
            waiting.erase(joiner);
        } else if (notice.kind == Notice::Kind::grown &&
                   notice.world == static_cast<int>(processes_.size())) {
            if (milliseconds(notice.value) > growth.pause) {
                growth.pause = milliseconds(notice.value);
                growth.parts = notice.text.data();
            }
            waiting.erase(notice.process);
        } else {
            throw std::runtime_error(fmt::format(
                "process {} sent an unexpected notice during a join: kind {}, rank {}, "
                "world of {}",
                notice.process, static_cast<int>(notice.kind), notice.rank, notice.world));
        }
    }
    growth.parts = join_parts + "; pause: " + growth.parts;
    return growth;
}

}  // namespace nexar::bench
