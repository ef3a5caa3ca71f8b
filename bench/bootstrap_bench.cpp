/// Measures how long a cluster takes to form: N processes with a seed in this process, from exec
/// until each has a link to every other, and N nodes in one process. CPU seconds are the sum over
/// all processes until the last one is connected.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "report.hpp"

namespace nexar::bench {
namespace {

constexpr const char* kMemberMode = "--be-a-member";

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Runs in a child: joins, writes its CPU time to standard output, and stays until its standard
/// input ends.
int be_a_member() {
    const Node node = join();
    const double used = cpu_seconds();
    if (::write(STDOUT_FILENO, &used, sizeof used) != sizeof used) return 1;
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    }
    std::_Exit(0);  // leaving is not measured
}

struct Pipe {
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
        read = ends[0];
        write = ends[1];
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        ::close(read);
        if (write >= 0) ::close(write);
    }
    int read;
    int write;
};

pid_t start_member(const Pipe& in, const Pipe& out, char** environment) {
    static char program[] = "/proc/self/exe";
    std::string mode = kMemberMode;
    char* const arguments[] = {program, mode.data(), nullptr};
    const pid_t id = ::fork();
    if (id != 0) return id;
    ::dup2(in.read, STDIN_FILENO);
    ::dup2(out.write, STDOUT_FILENO);
    ::execve(program, arguments, environment);
    ::_exit(127);
}

struct Formation {
    double seconds = 0;
    double cpu = 0;
};

Formation form_processes(int members) {
    SeedOptions options;
    options.listen = "[::]:0";
    options.world = members;
    Seed seed(options);
    ::setenv("NEXAR_JOIN", seed.create_token({.uses = members}).c_str(), 1);
    const Pipe in;
    Pipe out;
    const double cpu_before = cpu_seconds();
    const auto begun = std::chrono::steady_clock::now();
    std::vector<pid_t> children;
    children.reserve(static_cast<std::size_t>(members));
    for (int i = 0; i < members; ++i) children.push_back(start_member(in, out, environ));
    ::close(std::exchange(out.write, -1));
    Formation formed;
    int connected = 0;
    for (double used = 0; connected < members; ++connected, formed.cpu += used) {
        if (::read(out.read, &used, sizeof used) != sizeof used) break;  // a member has ended
    }
    formed.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    formed.cpu += cpu_seconds() - cpu_before;
    for (const pid_t child : children) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    if (connected < members) throw std::runtime_error("a member did not join: " + seed.status());
    return formed;
}

Formation form_local_cluster(int members) {
    const double cpu_before = cpu_seconds();
    const auto begun = std::chrono::steady_clock::now();
    const std::vector<Node> nodes = local_cluster(members);
    Formation formed;
    formed.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    formed.cpu = cpu_seconds() - cpu_before;
    return formed;
}

struct Series {
    std::string name;
    int members = 0;
    int handshakes = 0;
    int runs = 0;
};

void report_series(Report& report, const Series& series, Formation (*form)(int)) {
    std::vector<double> seconds;
    std::vector<double> cpu;
    for (int run = 0; run < series.runs; ++run) {
        const Formation one = form(series.members);
        seconds.push_back(one.seconds);
        cpu.push_back(one.cpu);
    }
    std::ranges::sort(seconds);
    std::ranges::sort(cpu);
    report.row(series.name + "_s", seconds[seconds.size() / 2], "s");
    report.row(series.name + "_best_s", seconds.front(), "s");
    report.row(series.name + "_cpu_s", cpu[cpu.size() / 2], "s");
    report.row(series.name + "_handshakes", series.handshakes, "");
}

int run(int argc, char** argv) {
    CLI::App app{"Measures how long clusters take to form."};
    std::string json_path;
    int runs = 7;
    std::vector<int> processes{8, 16};
    std::vector<int> local{64};
    app.add_option("--json", json_path,
                   "Also write the rows to this file, one JSON object per line");
    app.add_option("--runs", runs, "Runs of each series; the median is reported")
        ->check(CLI::Range(1, 1000));
    app.add_option("--processes", processes, "Sizes of the clusters of processes; 0: none");
    app.add_option("--local", local, "Sizes of the clusters in this process; 0: none");
    CLI11_PARSE(app, argc, argv);
    Report report(json_path);
    for (const int n : processes) {
        // Each member has two handshakes with the seed: one as a joiner and one as a member.
        const Series series{"join_" + std::to_string(n), n, n * (n - 1) / 2 + 2 * n, runs};
        if (n > 0) report_series(report, series, form_processes);
    }
    for (const int n : local) {
        const Series series{"local_cluster_" + std::to_string(n), n, n * (n - 1) / 2,
                            std::max(1, runs / 2)};
        if (n > 0) report_series(report, series, form_local_cluster);
    }
    return report.finish() ? 0 : 1;
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) try {
    if (argc == 2 && std::string(argv[1]) == nexar::bench::kMemberMode) {
        return nexar::bench::be_a_member();
    }
    return nexar::bench::run(argc, argv);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
