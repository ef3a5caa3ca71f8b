/// How fast the QUIC link is, beside TCP and TLS over TCP: one client and one server process, each
/// on a core of its own.

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nexar/error.hpp>
#include <nexar/log.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "groups.hpp"
#include "server.hpp"

namespace nexar::bench {
namespace {

struct Group {
    std::string_view name;
    void (*run)(Trials&, Report&, const GroupOptions&);
};

constexpr std::array kGroups{Group{"throughput", bench_throughput}, Group{"loss", bench_loss},
                             Group{"pingpong", bench_pingpong},
                             Group{"small_under_bulk", bench_small_under_bulk},
                             Group{"handshakes", bench_handshakes}};

/// The cores that this process may use.
std::vector<std::size_t> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail_system("ask for the allowed cores");
    std::vector<std::size_t> cores;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
    return cores;
}

void pin_to(std::size_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail_system("pin a process to a core");
}

/// Every connection would repeat the same warnings.
void log_each_line_once() {
    set_log_sink([said = std::set<std::string, std::less<>>()](const LogRecord& record) mutable {
        if (said.emplace(record.text).second) {
            fmt::print(stderr, "{}: {}\n", name(record.level), record.text);
        }
    });
}

[[noreturn]] void run_server(Control& control, const Party& party, std::size_t core) {
    // A client that was killed leaves no server behind.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_log_level(LogLevel::error);  // the client has said the rest
    int code = 0;
    try {
        pin_to(core);
        MessageRing ring;
        serve(control, party, ring);
    } catch (const std::exception&) {
        code = 1;  // the client was told why, and says it
    }
    std::fflush(nullptr);
    ::_exit(code);
}

/// The other process; killed when this object ends, however that comes.
class ServerProcess {
public:
    ServerProcess(Control& own, Control& theirs, const Party& party, std::size_t core) {
        std::fflush(nullptr);
        pid_ = fork();
        if (pid_ < 0) fail_system("start the server process");
        if (pid_ > 0) return;
        {
            const Control client_end(std::move(own));
        }
        run_server(theirs, party, core);
    }
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;
    ~ServerProcess() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

private:
    pid_t pid_ = -1;
};

void run_groups(Control& control, const Party& party, const std::string& only,
                const GroupOptions& options, Report& report) {
    MessageRing ring;
    ring.fill();
    Trials trials(control, party, ring);
    try {
        for (const Group& group : kGroups) {
            if (group.name.find(only) != std::string_view::npos) {
                group.run(trials, report, options);
            }
        }
        control.send(Order{.task = Task::leave});
    } catch (const std::exception&) {
        // A failure of the server explains what was seen here.
        if (const std::string told = control.last_words(); !told.empty()) {
            fmt::print(stderr, "link_bench: {}\n", told);
        }
        throw;
    }
}

/// Throws Errc::invalid_argument when no group has such a name.
void require_group(const std::string& only) {
    std::string names;
    for (const Group& group : kGroups) {
        if (group.name.find(only) != std::string_view::npos) return;
        names += fmt::format(" {}", group.name);
    }
    throw Error(Errc::invalid_argument,
                fmt::format("no group has \"{}\" in its name; there are{}", only, names));
}

void warn_if_busy() {
    constexpr double kIdle = 0.5;
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > kIdle) {
        fmt::print(stderr,
                   "warning: the machine is busy (load average {:.1f}): figures will be low and "
                   "uneven\n",
                   load);
    }
}

void run(const std::string& only, const GroupOptions& options, Report& report) {
    require_group(only);
    warn_if_busy();
    std::signal(SIGPIPE, SIG_IGN);
    log_each_line_once();
    const std::vector<std::size_t> cores = allowed_cores();
    if (cores.size() < 2) {
        fmt::print(stderr,
                   "warning: client and server share the only core allowed; figures will "
                   "be low. Allow two, see taskset(1)\n");
    }
    const Party party = make_party();
    auto [own, theirs] = Control::make_pair();
    const ServerProcess server(own, theirs, party, cores[cores.size() > 1 ? 1 : 0]);
    {
        const Control server_end(std::move(theirs));
    }
    pin_to(cores[0]);
    fmt::print("client on core {}, server on core {}, over the loopback address\n", cores.front(),
               cores[cores.size() > 1 ? 1 : 0]);
    run_groups(own, party, only, options, report);
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app("Speed of nexar's QUIC link, beside TCP and TLS over TCP");
    std::string json;
    std::string only;
    bool quick = false;
    GroupOptions options{.seed = nexar::entropy_seed() >> 32U};
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    app.add_flag("--quick", quick, "A rough look, within half a minute");
    app.add_option("--only", only,
                   "Groups whose name contains this: throughput, loss, pingpong, "
                   "small_under_bulk, handshakes");
    auto* seconds = app.add_option("--seconds", options.seconds, "How long a repetition lasts")
                        ->check(CLI::Range(0.01, 5.0));
    auto* repetitions = app.add_option("--repetitions", options.repetitions, "How many of them")
                            ->check(CLI::Range(1, 101));
    app.add_option("--seed", options.seed, "Which datagrams are lost");
    CLI11_PARSE(app, argc, argv);
    if (quick && seconds->empty()) options.seconds = 0.15;
    if (quick && repetitions->empty()) options.repetitions = 3;

    try {
        Report report(json);
        run(only, options, report);
        return report.finish() ? 0 : 1;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "link_bench: {}\n", failure.what());
        return 1;
    }
}
