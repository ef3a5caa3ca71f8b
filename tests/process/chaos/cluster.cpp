#include "process/chaos/cluster.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/network_namespace.hpp"

namespace nexar::chaos {

namespace {

constexpr std::chrono::seconds kStartTime{20};

/// A UDP port of loopback that is free now. It lies below the kernel's default ephemeral range
/// (32768 to 60999), so that no socket of another test gets it while the seed is down.
int free_port() {
    constexpr int kFirst = 30'000;
    constexpr int kPorts = 2700;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < kPorts; ++i) {
        const int port = kFirst + (::getpid() + i) % kPorts;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const bool bound =
            ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        ::close(socket);
        if (bound) return port;
    }
    throw std::runtime_error("no free port");
}

std::vector<char*> exec_list(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options) : options_(options) {
    listen_ = options_.networks != nullptr ? Networks::address(0) + ":7400"
                                           : fmt::format("127.0.0.1:{}", free_port());
    start_seed();
    if (options_.second_seed) start_second_seed();
    join_ = "NEXAR_JOIN=" + seed_->token;
    for (int i = 0; i < options_.ranks; ++i) start_rank(free_host());
    if (const std::string missing = await_whole(kStartTime); !missing.empty()) {
        throw std::runtime_error("the cluster did not form: " + missing);
    }
}

Cluster::~Cluster() {
    for (const auto& rank : ranks_) end(*rank);
    if (seed_) end(*seed_);
    if (second_) end(*second_);
}

Process& Cluster::spawn(const std::vector<std::string>& arguments, const std::string& variable,
                        int host) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
    std::vector<std::string> all{NEXAR_CHAOS_RANK};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment{"PATH=/usr/bin:/bin"};
    if (std::getenv("NEXAR_LOG_LEVEL") == nullptr)
        environment.emplace_back("NEXAR_LOG_LEVEL=error");
    for (const char* name :
         {"CHAOS_KEEP_HUNG", "NEXAR_LOG_LEVEL", "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
        if (const char* const value = std::getenv(name)) {
            environment.push_back(fmt::format("{}={}", name, value));
        }
    }
    if (options_.port != 0) {
        environment.push_back(fmt::format("NEXAR_LISTEN=0.0.0.0:{}", options_.port));
    }
    if (!variable.empty()) environment.push_back(variable);
    const auto argument_list = exec_list(all);
    const auto environment_list = exec_list(environment);
    const pid_t network =
        options_.networks != nullptr && host >= 0 ? options_.networks->host(host) : -1;
    const pid_t parent = ::getpid();
    auto process = std::make_unique<Process>();
    process->host = host;
    process->id = ::fork();
    if (process->id < 0) throw std::runtime_error("cannot start a process");
    if (process->id == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(3);
        try {
            if (network >= 0) testing::enter_network_of(network);
        } catch (...) {
            ::_exit(126);
        }
        ::dup2(ends[1], STDOUT_FILENO);
        ::execve(NEXAR_CHAOS_RANK, argument_list.data(), environment_list.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    process->output = ends[0];
    ranks_.push_back(std::move(process));
    return *ranks_.back();
}

std::unique_ptr<Process> Cluster::spawn_seed(const std::vector<std::string>& more,
                                             const std::string& listen, const std::string& state,
                                             int host) {
    std::vector<std::string> arguments{"--seed", listen,        std::to_string(options_.ranks),
                                       state,    options_.link, options_.budget};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process& started = spawn(arguments, "", host);
    const bool ready = await([&] { return !started.token.empty() || started.ended; }, kStartTime);
    if (!ready || started.ended) {
        throw std::runtime_error("the seed did not start: " + started.trouble);
    }
    std::unique_ptr<Process> seed = std::move(ranks_.back());
    ranks_.pop_back();
    return seed;
}

void Cluster::start_seed() {
    std::vector<std::string> more;
    if (options_.second_seed) more.push_back(Networks::address(second_seed_host()) + ":7400");
    seed_ = spawn_seed(more, listen_, state_directory(), 0);
}

void Cluster::start_second_seed() {
    const std::string ca = directory_.path() + "/ca";
    std::filesystem::create_directory(ca);
    std::filesystem::permissions(ca, std::filesystem::perms::owner_all);
    for (const char* file : {"/ca.key", "/ca.pem"}) {
        std::filesystem::copy_file(state_directory() + file, ca + file);
    }
    second_ = spawn_seed({listen_, ca}, Networks::address(second_seed_host()) + ":7400",
                         directory_.path() + "/second", second_seed_host());
}

void Cluster::use_second_seed() {
    join_ = "NEXAR_JOIN=" + second_->token;
}

void Cluster::copy_seed_state() {
    const std::filesystem::path copy = directory_.path() + "/copy";
    std::filesystem::create_directory(copy, state_directory());  // with the same permissions
    for (const auto& file : std::filesystem::directory_iterator(state_directory())) {
        // The seed renames such a file as soon as it is complete.
        if (file.path().extension() == ".new") continue;
        std::filesystem::copy_file(file.path(), copy / file.path().filename(),
                                   std::filesystem::copy_options::overwrite_existing);
    }
}

void Cluster::restore_seed_state() {
    std::filesystem::remove_all(state_directory());
    std::filesystem::rename(directory_.path() + "/copy", state_directory());
}

void Cluster::kill_seed() {
    end(*seed_);
    seed_.reset();
}

Process& Cluster::start_rank(int host) {
    const std::string log = fmt::format("{}/rank{}.log", directory_.path(), started_++);
    Process& process =
        spawn({log, std::to_string(options_.pace.count()), std::to_string(options_.hammer.count())},
              join_, host);
    process.log = log;
    return process;
}

void Cluster::kill(Process& process) {
    end(process);
}

void Cluster::stop(Process& process) {
    process.stopped = true;
    ::kill(process.id, SIGSTOP);
}

void Cluster::resume(Process& process) {
    process.stopped = false;
    ::kill(process.id, SIGCONT);
}

void Cluster::end(Process& process) {
    if (!process.ended) ::kill(process.id, SIGKILL);
    reap(process, true);
    if (process.output >= 0) ::close(std::exchange(process.output, -1));
}

void Cluster::reap(Process& process, bool wait) {
    if (process.ended) return;
    int status = 0;
    if (::waitpid(process.id, &status, wait ? 0 : WNOHANG) != process.id) return;
    process.ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Cluster::Ranks Cluster::living() const {
    Ranks all;
    for (const auto& rank : ranks_) {
        if (!rank->ended) all.push_back(rank.get());
    }
    return all;
}

Process& Cluster::living_at(std::size_t index) const {
    const Ranks all = living();
    if (all.empty()) throw std::runtime_error("no rank is left");
    return *all[index % all.size()];
}

void Cluster::take(Process& process, const std::string& line) {
    std::istringstream in(line);
    std::string event;
    in >> event;
    if (event == "joined") in >> process.rank;
    if (event == "formed") process.formed = true;
    if (event == "token") in >> process.token;
    if (event == "minority") process.minority = true;
    if (event == "evicted") process.evicted = true;
    if (event == "trouble" || event == "hang") process.trouble += line + "; ";
    const auto read_ranks = [&in] {
        std::string list;
        in >> list;
        std::vector<int> all;
        std::istringstream ranks(list);
        for (std::string one; std::getline(ranks, one, ',');) all.push_back(std::stoi(one));
        std::ranges::sort(all);
        return all;
    };
    if (event == "world") {
        std::int64_t parent = 0;
        in >> process.world_number >> parent;
        process.minority = false;
        process.world = read_ranks();
    }
    if (event == "view") {
        in >> process.epoch;
        process.view = read_ranks();
    }
}

void Cluster::hear(Process& process) {
    std::array<char, 4096> bytes{};
    const auto size = ::read(process.output, bytes.data(), bytes.size());
    if (size <= 0) {
        ::close(std::exchange(process.output, -1));
        return reap(process, true);
    }
    process.partial.append(bytes.data(), static_cast<std::size_t>(size));
    for (auto at = process.partial.find('\n'); at != std::string::npos;
         at = process.partial.find('\n')) {
        take(process, process.partial.substr(0, at));
        process.partial.erase(0, at + 1);
    }
}

bool Cluster::await(const std::function<bool()>& condition, Duration within) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        std::vector<pollfd> polled;
        std::vector<Process*> who;
        const auto add = [&](Process* process) {
            if (process == nullptr || process->output < 0) return;
            polled.push_back({.fd = process->output, .events = POLLIN, .revents = 0});
            who.push_back(process);
        };
        for (const auto& rank : ranks_) add(rank.get());
        add(seed_.get());
        add(second_.get());
        ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
        for (std::size_t i = 0; i < polled.size(); ++i) {
            if (polled[i].revents != 0) hear(*who[i]);
        }
    }
    return true;
}

std::string Cluster::await_world(const Ranks& ranks, Duration within) {
    std::vector<int> wanted;
    const auto whole = [&] {
        wanted.clear();
        for (const Process* rank : ranks) {
            // Nobody waits for a process that ended without being killed.
            if (rank->ended) return true;
            wanted.push_back(rank->rank);
        }
        std::ranges::sort(wanted);
        return std::ranges::all_of(ranks, [&](const Process* rank) {
            return rank->rank >= 0 && rank->world == wanted && rank->view == wanted;
        });
    };
    const bool done = await(whole, within);
    const bool any_ended =
        std::ranges::any_of(ranks, [](auto* rank) { return rank->ended.has_value(); });
    if (done && !any_ended) return {};
    return fmt::format("{} of ranks {}:\n{}", any_ended ? "unexpected end" : "no common world",
                       fmt::join(wanted, ","), describe());
}

std::string Cluster::await_evicted(Process& process, Duration within) {
    if (await([&] { return process.ended.has_value(); }, within) && process.evicted) return {};
    return fmt::format("rank {} did not learn that it was evicted:\n{}", process.rank, describe());
}

int Cluster::free_host() const {
    const auto taken = [this](int host) {
        return std::ranges::any_of(
            ranks_, [&](const auto& rank) { return !rank->ended && rank->host == host; });
    };
    int host = 1;
    while (taken(host)) ++host;
    return host;
}

std::string Cluster::grow_to(std::size_t ranks, Duration within) {
    while (living().size() < ranks) start_rank(free_host());
    return await_whole(within);
}

chaos_checker::Findings Cluster::finish(const chaos_checker::Rules& rules) {
    std::vector<std::string> logs;
    // All at once: none may notice the end of another one. Stopped first, because this process may
    // be interrupted between two signals.
    for (const int signal : {SIGSTOP, SIGKILL}) {
        for (const Process* rank : living()) ::kill(rank->id, signal);
    }
    for (const auto& rank : ranks_) {
        end(*rank);
        logs.push_back(rank->log);
    }
    if (seed_) end(*seed_);
    if (second_) end(*second_);
    return chaos_checker::check_files(logs, rules);
}

std::string Cluster::describe() const {
    std::string all = !seed_ ? "  no seed\n"
                      : seed_->ended.has_value()
                          ? fmt::format("  seed: exit code {} {}\n", *seed_->ended, seed_->trouble)
                          : fmt::format("  seed: process {}\n", seed_->id);
    for (const auto& one : ranks_) {
        if (one->ended && (*one->ended > 128 || one->evicted)) continue;  // as it should
        all +=
            fmt::format("  process {}: rank {}, world {} of {}, view {}{}{}{}{} {}\n", one->id,
                        one->rank, one->world_number, fmt::join(one->world, ","),
                        fmt::join(one->view, ","), one->minority ? ", minority" : "",
                        one->evicted ? ", evicted" : "", one->stopped ? ", stopped" : "",
                        one->ended ? fmt::format(", exit code {}", *one->ended) : "", one->trouble);
    }
    return all;
}

}  // namespace nexar::chaos
