// The two roles of a measuring process: launcher of the ranks, or a rank.

#include "bench/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nexar/join.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "base/try.hpp"
#include "collective.hpp"
#include "run/embedded_seed.hpp"
#include "run/flag_settings.hpp"
#include "run/hosts.hpp"
#include "run/units.hpp"
#include "runtime/config_sources.hpp"

namespace nexar::bench {

namespace {

constexpr const char* kRanks = "--ranks";

Result<std::string> this_program() {
    std::error_code error;
    auto path = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return Error(Errc::unsupported, "cannot read /proc/self/exe: " + error.message());
    return path.string();
}

/// This command line again for a rank, without the number of ranks, which the rank learns by
/// joining.
std::vector<std::string> rank_arguments(const CLI::App& command) {
    std::vector<std::string> arguments{command.get_name()};
    for (const CLI::Option* option : command.parse_order()) {
        if (option->check_name(kRanks)) continue;
        if (option->nonpositional()) arguments.push_back(option->get_name());
        arguments.insert(arguments.end(), option->results().begin(), option->results().end());
    }
    return arguments;
}

/// Gives a setting the value of an option, in place of its own flag. Does nothing without a value.
Result<void> set_choice(run::NamedSettings& settings, const char* name, const std::string& value,
                        std::span<const std::string_view> choices) {
    if (value.empty()) return {};
    if (std::ranges::find(choices, value) == choices.end()) {
        return not_allowed(name, value, fmt::format("{}", fmt::join(choices, ", ")));
    }
    std::erase_if(settings, [&](const auto& one) { return one.first == name; });
    settings.emplace_back(name, value);
    return {};
}

Result<run::NamedSettings> settings_of(const Ranks& ranks, const Invocation& invocation) {
    auto settings = run::flag_settings(invocation.flags);
    NEXAR_TRY(set_choice(settings, "protection", ranks.protection, kProtections));
    NEXAR_TRY(set_choice(settings, "link", ranks.link, kLinks));
    return settings;
}

Result<int> start_ranks(std::uint32_t world, std::vector<std::string> arguments,
                        const run::NamedSettings& settings) {
    NEXAR_TRY_VALUE(shares, run::share_ranks("", world));
    NEXAR_TRY_VALUE(program, this_program());
    arguments.insert(arguments.begin(), program);
    const run::Part part{.world = shares.front().count,
                         .count = shares.front().count,
                         .command = std::move(arguments),
                         .environment = run::as_variables(settings),
                         .grace = std::chrono::seconds(10),
                         .bind = true};
    auto units = run::rank_units(part);
    for (run::Unit& unit : units) unit.gets_input = false;
    units.front()
        .output_prefix.clear();  // only rank 0 prints: a table that other programs may read
    return run::supervise_with_seed(
        {.units = std::move(units), .grace = part.grace, .world = part.world},
        {.world = part.world, .settings = settings});
}

/// A rank that fails ends the whole job, so that its own error is reported and not those of the
/// ranks that waited for it.
int take_part(const Job& job, const Node& node, const Config& config) {
    try {
        return job.take_part(node, config);
    } catch (const Error& error) {
        const bool everywhere =
            error.code() == Errc::invalid_argument || error.code() == Errc::aborted;
        if (everywhere) throw;
        node.world().abort(kExitFailure, error.what());
        throw;
    }
}

Result<int> be_rank(const Job& job, const run::NamedSettings& settings) {
    std::vector<NamedValue> code;
    code.reserve(settings.size());
    for (const auto& [name, value] : settings) code.push_back({name, value});
    NEXAR_TRY_VALUE(loaded, load_config(std::move(code), {}));

    JoinOptions options;
    options.settings = settings;
    // A user who wants to measure a single rank gives -n 1.
    options.settings.emplace_back("require_cluster", "true");
    Node node = join(options);
    NEXAR_TRY(job.fits(static_cast<std::uint32_t>(node.world().size())));
    const int exit_code = take_part(job, node, loaded.config);
    node.close();
    return exit_code;
}

}  // namespace

void add_rank_options(CLI::App& command, Ranks& ranks) {
    command
        .add_option(std::string("-n,") + kRanks, ranks.started,
                    "Starts this many processes on this machine")
        ->type_name("RANKS");
    command
        .add_option("--protection", ranks.protection,
                    "Protection of messages: full, none; by default the value of the setting")
        ->type_name("KIND");
}

Result<int> run_job(const Job& job, const Ranks& ranks, const CLI::App& command,
                    const Invocation& invocation) {
    NEXAR_TRY_VALUE(settings, settings_of(ranks, invocation));
    if (!ranks.started) return be_rank(job, settings);
    NEXAR_TRY(job.fits(*ranks.started));
    // Loading the configuration here also reports a bad setting once instead of once per rank.
    NEXAR_TRY_VALUE(loaded, load_config({}, invocation.flags));
    run::add_sharing(settings, loaded.config, *ranks.started);
    return start_ranks(*ranks.started, rank_arguments(command), settings);
}

void answer(const CLI::App& command, Invocation& invocation,
            const std::function<Result<int>()>& run) {
    const auto code = [&]() -> Result<int> {
        try {
            return run();
        } catch (const Error& error) {
            return error;
        }
    }();
    if (code) {
        invocation.exit_code = *code;
        return;
    }
    if (code.error().code() == Errc::invalid_argument) {
        throw CLI::ValidationError(command.get_name(), code.error().cause());
    }
    fmt::print(stderr, "nexar {}: {}\n", command.get_name(), code.error().what());
    invocation.exit_code = kExitFailure;
}

}  // namespace nexar::bench
