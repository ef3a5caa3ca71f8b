// A UDP proxy that injects faults, the same ones for the same seed. See docs/testing.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "support/udp_fault/command_line.hpp"
#include "support/udp_fault/proxy.hpp"

namespace nexar::udp_fault {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

/// A fault flag from the command line: for both directions, or with a prefix for one.
struct GivenFault {
    const FaultFlag* flag = nullptr;
    std::string name{};  // as written, with the dashes
    std::optional<Direction> direction{};
    std::string text{};
    CLI::Option* option = nullptr;
};

/// The command line of the user.
struct CommandLine {
    std::string listen = "127.0.0.1:0";
    std::string target{};
    std::optional<std::uint64_t> seed{};
    double stats_seconds = 0;
    std::string rebind_after = "0s";
    std::string rebind_every = "0s";
    std::vector<std::string> rebind_addresses{};
    std::string queue = "64MiB";
    std::deque<GivenFault> faults{};  // CLI11 keeps pointers to the texts
};

void add_options(CLI::App& app, CommandLine& line) {
    app.add_option("--listen", line.listen, "address that clients send to; port 0 picks a free one")
        ->capture_default_str()
        ->type_name("ADDRESS");
    app.add_option("--to", line.target, "address that datagrams are forwarded to")
        ->required()
        ->type_name("ADDRESS");
    app.add_option("--seed", line.seed, "repeat the decisions of the run that printed this seed")
        ->type_name("N");
    app.add_option("--stats", line.stats_seconds, "print statistics with this period")
        ->check(CLI::Range(0.01, 86400.0))
        ->type_name("SECONDS");
    app.add_option("--rebind-after", line.rebind_after,
                   "change the source ports this long after the first datagram")
        ->type_name("TIME");
    app.add_option("--rebind-every", line.rebind_every, "and again with this period")
        ->type_name("TIME");
    app.add_option("--rebind-address", line.rebind_addresses,
                   "source addresses, with port 0; each rebinding uses the next one")
        ->type_name("ADDRESS");
    app.add_option("--queue", line.queue, "bytes that may wait in each direction")
        ->capture_default_str()
        ->type_name("SIZE");
}

void add_fault(CLI::App& app, CommandLine& line, const FaultFlag& flag,
               std::optional<Direction> direction) {
    const char* const prefix = !direction                           ? "--"
                               : *direction == Direction::to_target ? "--up-"
                                                                    : "--down-";
    GivenFault& given = line.faults.emplace_back();
    given.flag = &flag;
    given.name = fmt::format("{}{}", prefix, flag.name);
    given.direction = direction;
    given.option = app.add_option(given.name, given.text, std::string(flag.meaning))
                       ->type_name(std::string(flag.value))
                       // An empty group hides the two variants in the help, whose footer explains
                       // them.
                       ->group(direction ? "" : "Faults");
}

void add_faults(CLI::App& app, CommandLine& line) {
    for (const FaultFlag& flag : fault_flags()) add_fault(app, line, flag, {});
    for (const Direction direction : {Direction::to_target, Direction::to_client}) {
        for (const FaultFlag& flag : fault_flags()) add_fault(app, line, flag, direction);
    }
    app.footer(
        "A fault applies to both directions. --up-NAME sets it only from clients to the target,\n"
        "--down-NAME only from the target to clients; both override --NAME.\n"
        "P is a probability such as 0.01; TIME has a unit, as in 5ms; SIZE may have one, as in "
        "1MiB.\n"
        "Statistics are printed at the end (SIGINT, SIGTERM).\n"
        "Exit codes: 0 success, 1 failure, 2 bad command line.");
}

Error in_flag(const std::string& name, const Error& error) {
    return {error.code(), fmt::format("{}: {}", name, error.cause())};
}

/// Stores the value, or returns an error that names the flag.
template <class Value>
Result<void> read(Value& value, const std::string& flag, const Result<Value>& parsed) {
    if (!parsed) return in_flag(flag, parsed.error());
    value = *parsed;
    return {};
}

/// Applies flags for both directions first, then those for one, in any order on the command line.
Result<void> apply_faults(const CommandLine& line, ProxyOptions& options) {
    for (const GivenFault& given : line.faults) {
        if (given.option->count() == 0) continue;
        for (const Direction direction : {Direction::to_target, Direction::to_client}) {
            if (given.direction.value_or(direction) != direction) continue;
            FaultOptions& faults =
                direction == Direction::to_target ? options.to_target : options.to_client;
            if (const auto applied = given.flag->apply(faults, given.text); !applied) {
                return in_flag(given.name, applied.error());
            }
        }
    }
    return {};
}

Result<ProxyOptions> options_from(const CommandLine& line) {
    ProxyOptions options;
    NEXAR_TRY(read(options.listen, "--listen", Address::parse(line.listen)));
    NEXAR_TRY(read(options.target, "--to", Address::parse(line.target)));
    NEXAR_TRY(read(options.rebind.after, "--rebind-after", parse_duration(line.rebind_after)));
    NEXAR_TRY(read(options.rebind.every, "--rebind-every", parse_duration(line.rebind_every)));
    NEXAR_TRY(read(options.queue.bytes, "--queue", parse_size(line.queue)));
    for (const std::string& text : line.rebind_addresses) {
        NEXAR_TRY(read(options.rebind.addresses.emplace_back(), "--rebind-address",
                       Address::parse(text)));
    }
    options.seed = line.seed ? *line.seed : entropy_seed();
    NEXAR_TRY(apply_faults(line, options));
    NEXAR_TRY(check(options));
    return options;
}

void print_statistics(const Proxy& proxy) {
    fmt::print("to target: {}\nto client: {}\n", describe(proxy.traffic(Direction::to_target)),
               describe(proxy.traffic(Direction::to_client)));
    std::fflush(stdout);
}

/// Blocks the signals that end the command. Call before starting threads, so that all inherit it.
sigset_t block_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

void print_until_signalled(const Proxy& proxy, const sigset_t& signals, double period) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(period);
    timeout.tv_nsec = static_cast<long>((period - static_cast<double>(timeout.tv_sec)) * 1e9);
    while (::sigtimedwait(&signals, nullptr, period > 0 ? &timeout : nullptr) < 0) {
        if (errno == EAGAIN) print_statistics(proxy);
    }
}

int run(int argc, char** argv) {
    CLI::App app("Forwards UDP datagrams to a target and back, with faults.", "udp_fault");
    CommandLine line;
    add_options(app, line);
    add_faults(app, line);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kExitOk : kExitUsage;
    }
    const auto options = options_from(line);
    if (!options) {
        fmt::print(stderr, "udp_fault: {}\nRun with --help for more information.\n",
                   options.error().cause());
        return kExitUsage;
    }
    const sigset_t signals = block_signals();
    const auto proxy = Proxy::start(*options);
    if (!proxy) {
        fmt::print(stderr, "udp_fault: {}\n", proxy.error().cause());
        return kExitFailure;
    }
    fmt::print("udp_fault: listening on {}, forwarding to {}, seed {}\n",
               describe(proxy->address()), describe(options->target), proxy->seed());
    std::fflush(stdout);
    print_until_signalled(*proxy, signals, line.stats_seconds);
    print_statistics(*proxy);
    return kExitOk;
}

}  // namespace
}  // namespace nexar::udp_fault

int main(int argc, char** argv) {
    try {
        return nexar::udp_fault::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "udp_fault: %s\n", error.what());
        return 1;
    }
}
