#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_flags.hpp"
#include "schedule/choice.hpp"

namespace nexar {

/// The options that describe a collective on the command line.
struct CollectiveQuestion {
    std::string operation{};
    std::string bytes = "1MiB";
    std::optional<std::uint32_t> world{};  // absent: as many as `hosts` has, or 4
    std::string hosts = "0";
    std::uint32_t root = 0;
    std::uint32_t element_bytes = 4;
    bool ordered = false;
    // Empty: from the settings.
    std::string reproducibility{};
    std::string algorithm{};
    std::string segment{};
    std::string latency{};
    std::string bandwidth{};
    std::string reduce{};
};

void add_collective_options(CLI::App& command, CollectiveQuestion& question);

/// A CollectiveQuestion after parsing, with the settings filled in.
struct AskedCollective {
    schedule::Workload workload{};
    schedule::Profile profile{};
    std::uint32_t root = 0;
};

/// Returns nullopt if no operation has this name.
std::optional<schedule::Collective> operation_named(std::string_view name);

/// "all_reduce, reduce, ..."
std::string operation_names();

/// An invalid_argument error: "x" is not a valid operation; allowed: ...
Error not_allowed(std::string_view what, std::string_view given, std::string_view allowed);

/// Parses a question; takes what it leaves open from the settings. Fails with invalid_argument, and
/// says what is allowed, or with bad_config.
Result<AskedCollective> understood(const CollectiveQuestion& question,
                                   const std::vector<ConfigFlag>& flags);

/// The schedules of all ranks for this choice. Fails with limit_exceeded if they do not fit into
/// memory.
Result<std::vector<schedule::Schedule>> all_schedules(const AskedCollective& collective,
                                                      const schedule::Choice& choice);

/// Parses a rate into bytes per second: "100Gbps" counts bits, "1.5GB/s" bytes; units are powers of
/// 1000.
Result<double> parse_rate(std::string_view text);

std::string as_time(double seconds);

/// Prints the answer, or the error to stderr. Returns the exit code.
int say(const Result<std::string>& answer);

}  // namespace nexar
