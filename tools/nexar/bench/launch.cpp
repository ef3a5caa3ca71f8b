// The two sides of `nexar bench`: the one that starts ranks, and a rank.

#include "bench/launch.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <nexar/join.hpp>
#include <system_error>
#include <utility>

#include "base/try.hpp"
#include "bench/measurement.hpp"
#include "bench/report.hpp"
#include "command.hpp"
#include "run/embedded_seed.hpp"
#include "run/hosts.hpp"
#include "run/units.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/config_sources.hpp"

namespace nexar::bench {

namespace {

Result<std::string> this_program() {
    std::error_code error;
    auto path = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return Error(Errc::unsupported, "/proc/self/exe cannot be read: " + error.message());
    return path.string();
}

}  // namespace

Result<int> launch(std::uint32_t ranks, std::vector<std::string> arguments,
                   const run::NamedSettings& settings) {
    NEXAR_TRY_VALUE(shares, run::share_ranks("", ranks));
    NEXAR_TRY_VALUE(program, this_program());
    arguments.insert(arguments.begin(), program);
    const run::Part part{.world = shares.front().count,
                         .count = shares.front().count,
                         .command = std::move(arguments),
                         .environment = run::as_variables(settings),
                         .grace = std::chrono::seconds(10)};
    auto units = run::rank_units(part);
    for (run::Unit& unit : units) unit.gets_input = false;
    units.front().output_prefix.clear();  // only rank 0 prints, a table for other programs
    return run::supervise_with_seed({.units = std::move(units), .grace = part.grace},
                                    {.world = part.world, .settings = settings});
}

int take_part(Plan plan, const run::NamedSettings& settings) {
    std::vector<NamedValue> code;
    code.reserve(settings.size());
    for (const auto& [name, value] : settings) code.push_back({name, value});
    const auto loaded = load_config(std::move(code), {});
    if (!loaded) throw Error(loaded.error());
    plan.profile = runtime::collective_profile(loaded->config).value();

    JoinOptions options;
    options.settings = settings;
    Node node = join(options);
    const Communicator world = node.world();
    const auto ranks = static_cast<std::uint32_t>(world.size());
    if (const auto fit = fits(plan, ranks); !fit) throw Error(fit.error());
    std::unique_ptr<Report> report;
    if (world.rank() == 0) {
        report =
            std::make_unique<Report>(plan, ranks, std::string(loaded->config.choice("protection")));
    }
    for (const std::uint64_t size : plan.sizes) {
        const Measured measured = measure(plan, world, size);
        if (report) report->row(measured);
    }
    // Only one rank fails for wrong data: the others would be said to have failed, too.
    const bool good = report == nullptr || report->finish();
    node.close();
    return good ? kExitOk : kExitFailure;
}

}  // namespace nexar::bench
