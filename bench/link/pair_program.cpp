#include "pair_program.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
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
#include "cores.hpp"
#include "groups.hpp"
#include "server.hpp"

namespace nexar::bench {
namespace {

/// Without this, every connection would repeat the same warnings.
void log_each_line_once() {
    set_log_sink([said = std::set<std::string, std::less<>>()](const LogRecord& record) mutable {
        if (said.emplace(record.text).second) {
            fmt::print(stderr, "{}: {}\n", name(record.level), record.text);
        }
    });
}

[[noreturn]] void run_server(Control& control, const Party& party, std::size_t core) {
    // A killed client must not leave its server behind.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_log_level(LogLevel::error);  // the client logs the rest
    int code = 0;
    try {
        pin_thread(core);
        MessageRing ring;
        serve(control, party, ring);
    } catch (const std::exception&) {
        code = 1;  // serve() has sent the error to the client, which prints it
    }
    std::fflush(nullptr);
    ::_exit(code);
}

/// The server process; the destructor kills it.
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

struct Run {
    std::string_view program;
    std::span<const Group> groups;
    std::string only{};
    GroupOptions options{};
};

void run_groups(Control& control, const Party& party, const Run& what, Report& report) {
    MessageRing ring;
    ring.fill();
    Trials trials(control, party, ring);
    try {
        for (const Group& group : what.groups) {
            if (group.name.find(what.only) != std::string_view::npos) {
                group.run(trials, report, what.options);
            }
        }
        control.send(Order{.task = Scenario::leave});
    } catch (const std::exception&) {
        // The server's failure is the cause of the one here.
        if (const std::string told = control.last_words(); !told.empty()) {
            fmt::print(stderr, "{}: {}\n", what.program, told);
        }
        throw;
    }
}

/// Throws Errc::invalid_argument if no group matches.
void require_group(const Run& what) {
    std::string names;
    for (const Group& group : what.groups) {
        if (group.name.find(what.only) != std::string_view::npos) return;
        names += fmt::format(" {}", group.name);
    }
    throw Error(Errc::invalid_argument,
                fmt::format("no group has \"{}\" in its name; the groups are{}", what.only, names));
}

void warn_if_busy() {
    constexpr double kIdle = 0.5;
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > kIdle) {
        fmt::print(
            stderr,
            "warning: the machine is busy (load average {:.1f}); the figures will be low and "
            "uneven\n",
            load);
    }
}

void run(const Run& what, Report& report) {
    require_group(what);
    warn_if_busy();
    std::signal(SIGPIPE, SIG_IGN);
    log_each_line_once();
    const std::vector<std::size_t> cores = allowed_cores();
    if (cores.size() < 2) {
        fmt::print(
            stderr,
            "warning: client and server share the only allowed core, and the figures will be "
            "low; allow two cores, see taskset(1)\n");
    }
    const Party party = make_party();
    auto [own, theirs] = Control::make_pair();
    const ServerProcess server(own, theirs, party, cores[cores.size() > 1 ? 1 : 0]);
    {
        const Control server_end(std::move(theirs));
    }
    pin_thread(cores[0]);
    fmt::print("client on core {}, server on core {}, over the loopback address\n", cores.front(),
               cores[cores.size() > 1 ? 1 : 0]);
    run_groups(own, party, what, report);
}

}  // namespace

int run_pair_program(int argc, char** argv, std::string_view title, std::span<const Group> groups) {
    CLI::App app{std::string(title)};
    Run what{.program = argv[0], .groups = groups};
    what.options.seed = nexar::entropy_seed() >> 32U;
    std::string names;
    for (const Group& group : groups) names += fmt::format(" {}", group.name);
    std::string json;
    bool quick = false;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    app.add_flag("--quick", quick, "Measure roughly, within half a minute");
    app.add_option("--only", what.only,
                   "Run only groups whose name contains this; the groups are" + names);
    auto* seconds = app.add_option("--seconds", what.options.seconds, "Length of a repetition")
                        ->check(CLI::Range(0.01, 5.0));
    auto* repetitions =
        app.add_option("--repetitions", what.options.repetitions, "Number of repetitions")
            ->check(CLI::Range(1, 101));
    app.add_option("--seed", what.options.seed,
                   "Seed that decides which datagrams are lost in the group loss");
    CLI11_PARSE(app, argc, argv);
    if (quick && seconds->empty()) what.options.seconds = 0.15;
    if (quick && repetitions->empty()) what.options.repetitions = 3;

    try {
        Report report(json);
        run(what, report);
        return report.finish() ? 0 : 1;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}: {}\n", what.program, failure.what());
        return 1;
    }
}

}  // namespace nexar::bench
