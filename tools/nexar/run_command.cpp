// nexar run: starts the ranks of a program on this machine, and on other hosts by ssh.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "command.hpp"
#include "help.hpp"
#include "run/embedded_seed.hpp"
#include "run/flag_settings.hpp"
#include "run/hosts.hpp"
#include "run/supervisor.hpp"
#include "run/units.hpp"
#include "runtime/config_sources.hpp"

namespace nexar {

namespace {

struct RunOptions {
    std::optional<std::uint32_t> ranks;
    std::string hosts;
    std::vector<std::string> environment;
    std::string grace = "10s";
    std::string host_timeout = "15s";
    std::string remote_nexar = "nexar";
    bool bind = false;
    run::OnFailure on_failure = run::OnFailure::end;
    std::optional<std::uint32_t> min;
    std::optional<std::uint32_t> max;
    std::optional<std::uint32_t> max_restarts;
};

constexpr std::uint32_t kMostRestarts = 1'000'000;

constexpr const char* kRunHelp =
    "The ranks find each other automatically: the program only has to call\n"
    "nexar::join() without arguments.\n"
    "\n"
    "Each line of output is prefixed with [rank]. The first rank that fails ends the\n"
    "run: nexar run exits with that rank's exit code, or with 128 plus the signal\n"
    "number, and sends SIGTERM to the other ranks. It forwards the signals it receives\n"
    "to all ranks and kills ranks that do not end within --grace after SIGTERM or\n"
    "SIGINT; a second SIGINT kills them at once. No process that a rank started is\n"
    "left behind, even if nexar run itself is killed. Standard input goes to rank 0 if\n"
    "rank 0 runs on this machine.\n"
    "\n"
    "With --on-failure continue, a failure after all ranks have joined is reported, and\n"
    "the other processes continue. With --on-failure restart, a new process also joins\n"
    "in place of the failed one. It gets another rank, because ranks are not reused: its\n"
    "lines are prefixed with [2.1] for the first restart of rank 2, and NEXAR_RANK is\n"
    "not set. The run ends, as without the option, when no process is running any more,\n"
    "or when fewer than --min are running, waiting for their restart, or done with exit\n"
    "code 0.\n"
    "\n"
    "Exit codes:\n"
    "  0    all ranks exited with code 0; with --on-failure continue or restart, at\n"
    "       least --min processes did, one of them after the last failure\n"
    "  1    the seed or the first process could not be set up; the reason is printed\n"
    "  2    the command line is wrong; nothing was started\n"
    "  127  the program cannot be started\n"
    "  255  the connection to a host is lost\n"
    "  else the exit code of the process whose failure ended the run, 128 plus the\n"
    "       number of the signal that killed it, or the code of Communicator::abort\n"
    "\n"
    "Examples:\n"
    "  nexar run -n 4 -- ./program --its-own-option\n"
    "  nexar run -n 4 --nexar-log-level=debug -- ./program\n"
    "  nexar run --host node1:2,node2:2 -- /shared/program\n"
    "  nexar run -n 8 --on-failure restart --min 6 -- ./program\n"
    "\n"
    "Environment variables that each rank receives:\n"
    "  NEXAR_RANK, NEXAR_WORLD_SIZE        its rank and the number of ranks\n"
    "  NEXAR_LOCAL_RANK, NEXAR_LOCAL_SIZE  the same among the ranks on its host\n"
    "  NEXAR_JOIN                          how to reach the seed; a secret\n"
    "  NEXAR_RESTARTED                     1 after the first restart; else not set\n"
    "\n"
    "Next steps:\n"
    "torchrun, mpirun, srun and Kubernetes start the program without nexar run;\n"
    "docs/start.md explains how.";

/// Turns `NAME`, which stands for the value in this environment, into `NAME=value`.
Result<std::string> variable_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || text.empty()) {
        return Error(Errc::invalid_argument, "--env needs NAME or NAME=value");
    }
    if (equals != std::string::npos) return text;
    const char* const value = std::getenv(text.c_str());
    if (value == nullptr) {
        return Error(Errc::invalid_argument,
                     fmt::format("--env {0}: this variable is not set here; set it, or give "
                                 "--env {0}=value",
                                 text));
    }
    return text + "=" + value;
}

bool wants_colour(int descriptor) {
    const char* const terminal = std::getenv("TERM");
    return ::isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr && terminal != nullptr &&
           std::string_view(terminal) != "dumb";
}

Result<run::Part> whole_run(const RunOptions& options, const Invocation& invocation,
                            const run::NamedSettings& settings) {
    run::Part part{.command = invocation.program};
    NEXAR_TRY_VALUE(grace, parse_duration(options.grace));
    part.grace = grace;
    NEXAR_TRY_VALUE(host_timeout, parse_duration(options.host_timeout));
    if (host_timeout < std::chrono::seconds(1) || host_timeout > run::kMaxHostTimeout) {
        return Error(Errc::invalid_argument,
                     fmt::format("--lost-after: {} is not between 1s and {}", options.host_timeout,
                                 format_duration(run::kMaxHostTimeout)));
    }
    part.host_timeout = host_timeout;
    part.on_failure = options.on_failure;
    part.bind = options.bind;
    part.output_in_colour = wants_colour(STDOUT_FILENO);
    part.errors_in_colour = wants_colour(STDERR_FILENO);
    std::error_code error;
    part.directory = std::filesystem::current_path(error).string();
    part.environment = run::as_variables(settings);
    for (const std::string& text : options.environment) {
        NEXAR_TRY_VALUE(variable, variable_of(text));
        part.environment.push_back(variable);
    }
    return part;
}

Result<std::vector<run::Unit>> plan_units(const RunOptions& options, run::Part part,
                                          const std::vector<run::HostShare>& shares) {
    std::vector<run::Unit> units;
    if (!std::ranges::all_of(shares, &run::HostShare::is_local) && !run::is_on_path("ssh")) {
        return Error(Errc::unsupported,
                     "--host needs ssh, which is not on the PATH of this machine");
    }
    part.world = shares.back().first_rank + shares.back().count;
    for (const run::HostShare& share : shares) {
        part.first_rank = share.first_rank;
        part.count = share.count;
        if (share.is_local()) {
            for (run::Unit& unit : run::rank_units(part)) units.push_back(std::move(unit));
            continue;
        }
        run::Part remote = part;
        const auto settings = run::setting_variables();
        remote.environment.insert(remote.environment.begin(), settings.begin(), settings.end());
        units.push_back(run::host_unit(share, remote, options.remote_nexar));
    }
    return units;
}

/// Checks the options about failures.
Result<run::FailureOptions> failure_options(const RunOptions& options, std::uint32_t world) {
    using run::OnFailure;
    const auto refuse = [](std::string why) {
        return Error(Errc::invalid_argument, std::move(why));
    };
    if (options.on_failure == OnFailure::end && (options.min || options.max)) {
        return refuse("--min and --max need --on-failure continue or --on-failure restart");
    }
    if (options.on_failure != OnFailure::restart && options.max_restarts) {
        return refuse("--max-restarts needs --on-failure restart");
    }
    run::FailureOptions failure{.mode = options.on_failure};
    failure.min = options.min.value_or(failure.min);
    failure.max_restarts = options.max_restarts.value_or(failure.max_restarts);
    if (failure.min < 1 || failure.min > world) {
        return refuse(fmt::format("--min: {} is not between 1 and the number of ranks, {}",
                                  failure.min, world));
    }
    if (options.max && (*options.max < world || *options.max > run::kMostRanks)) {
        return refuse(fmt::format("--max: {} is not between the number of ranks, {}, and {}",
                                  *options.max, world, run::kMostRanks));
    }
    if (failure.max_restarts > kMostRestarts) {
        return refuse(
            fmt::format("--max-restarts: {} is more than {}", failure.max_restarts, kMostRestarts));
    }
    return failure;
}

Result<int> run_ranks(const RunOptions& options, const Invocation& invocation) {
    // Loading the configuration here also reports a bad setting once instead of once per rank.
    NEXAR_TRY_VALUE(loaded, load_config({}, invocation.flags));
    NEXAR_TRY_VALUE(shares, run::share_ranks(options.hosts, options.ranks));
    const bool other_hosts = !std::ranges::all_of(shares, &run::HostShare::is_local);
    const std::uint32_t world = shares.back().first_rank + shares.back().count;
    NEXAR_TRY_VALUE(failure, failure_options(options, world));
    // A failed process is a member until the others agree that it is gone.
    const std::uint32_t most = options.on_failure == run::OnFailure::restart ? 0 : world;
    auto settings = run::flag_settings(invocation.flags);
    if (!other_hosts) run::add_sharing(settings, loaded.config, world);
    NEXAR_TRY_VALUE(part, whole_run(options, invocation, settings));
    NEXAR_TRY_VALUE(units, plan_units(options, part, shares));
    // Ranks get cluster settings from the seed; a value known only to the ranks would contradict
    // it.
    return run::supervise_with_seed({.units = std::move(units),
                                     .grace = part.grace,
                                     .world = world,
                                     .host_timeout = part.host_timeout,
                                     .failure = failure},
                                    {.world = world,
                                     .max_world = options.max.value_or(most),
                                     .other_hosts = other_hosts,
                                     .settings = settings});
}

void start(const RunOptions& options, Invocation& invocation, CLI::App& command) {
    // Without `--` the program begins at the first word that is not an option.
    const std::vector<std::string> rest = command.remaining();
    if (!rest.empty() && rest.front().starts_with('-'))
        throw CLI::ExtrasError("run", {rest.rbegin(), rest.rend()});
    invocation.program.insert(invocation.program.begin(), rest.begin(), rest.end());
    if (invocation.program.empty()) {
        throw CLI::ValidationError("run",
                                   "no program was given; example: nexar run -n 4 -- ./program");
    }
    const auto code = run_ranks(options, invocation);
    if (code) {
        invocation.exit_code = *code;
        return;
    }
    if (code.error().code() == Errc::invalid_argument) {
        throw CLI::ValidationError("run", code.error().cause());
    }
    fmt::print(stderr, "nexar run: {}\n", code.error().what());
    invocation.exit_code = kExitFailure;
}

void add_failure_options(CLI::App& command, RunOptions& options) {
    const std::map<std::string, run::OnFailure> modes{{"end", run::OnFailure::end},
                                                      {"continue", run::OnFailure::go_on},
                                                      {"restart", run::OnFailure::restart}};
    command
        .add_option("--on-failure", options.on_failure,
                    "What happens when a process fails: end ends the run; continue lets the other "
                    "processes continue; restart also starts a new process that joins them")
        ->transform(CLI::CheckedTransformer(modes).description(""))
        ->default_str("end")
        ->type_name("end|continue|restart");
    command
        .add_option("--min", options.min,
                    "The run ends when fewer processes are left; needs --on-failure continue or "
                    "restart")
        ->default_str("1")
        ->type_name("PROCESSES");
    command
        .add_option("--max", options.max,
                    "The most members that the cluster may have at a time, including failed ones "
                    "until the others agree that they are gone; without it there is no limit with "
                    "--on-failure restart, otherwise it is the number of ranks")
        ->type_name("PROCESSES");
    command
        .add_option("--max-restarts", options.max_restarts,
                    "How often the place of each rank is filled again, after pauses that grow "
                    "from 0.1 s to 5 s")
        ->default_str("3")
        ->type_name("TIMES");
}

}  // namespace

void accept_np(const CLI::App& app, int argc, char** argv) {
    static char np[] = "--np";
    if (argc < 2 || std::string_view(argv[1]) != "run") return;
    const CLI::App& command = *app.get_subcommand("run");
    for (int i = 2; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (!argument.starts_with('-')) return;  // the program
        if (argument == "-np") argv[i] = np;
        const CLI::Option* const option = command.get_option_no_throw(argv[i]);
        if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
    }
}

void add_run_command(CLI::App& app, Invocation& invocation) {
    const auto options = std::make_shared<RunOptions>();
    CLI::App* const command =
        app.add_subcommand("run", "Runs the ranks of a program on this machine and on other hosts");
    set_help(*command, "-n RANKS [OPTIONS] -- PROGRAM [ARGUMENTS]", kRunHelp);
    command->prefix_command();
    command->add_option("-n,--ranks,--np", options->ranks, "Number of ranks; -np works too")
        ->type_name("RANKS");
    command
        ->add_option(
            "--host", options->hosts,
            "Hosts to run on: a,b divides the ranks evenly, a:2,b:4 sets the number per "
            "host; localhost is this machine, all others must allow ssh without a password")
        ->type_name("HOSTS");
    command
        ->add_option("--env", options->environment,
                     "Sets an environment variable for the ranks; without a value, copies it from "
                     "this environment; may be repeated")
        ->type_name("NAME[=VALUE]")
        ->allow_extra_args(false);  // or a program after it would be a second value
    command
        ->add_option(
            "--grace", options->grace,
            "How long ranks may take to end after SIGTERM or SIGINT before they are killed")
        ->capture_default_str()
        ->type_name("TIME");
    command
        ->add_option("--lost-after", options->host_timeout,
                     "How long another host may be silent before the connection to it counts as "
                     "lost; that host then ends its ranks by itself")
        ->capture_default_str()
        ->type_name("TIME");
    command
        ->add_option("--remote-nexar", options->remote_nexar,
                     "Path of nexar on the other hosts, if it is not on their PATH")
        ->capture_default_str()
        ->type_name("PATH");
    add_failure_options(*command, *options);
    command->add_flag("--bind", options->bind,
                      "Binds each rank to its own share of its host's processors, unless ranks "
                      "outnumber processors");
    command->callback([options, command, &invocation] { start(*options, invocation, *command); });
}

}  // namespace nexar
