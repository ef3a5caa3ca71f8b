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

/// A collective as it is asked about on the command line.
struct CollectiveQuestion {
    std::string operation{};
    std::string bytes = "1MiB";
    std::uint32_t world = 4;
    std::uint32_t hosts = 0;  // 0: as many as ranks
    std::uint32_t root = 0;
    std::uint32_t element_bytes = 4;
    bool ordered = false;
    // Empty: as it is set.
    std::string reproducibility{};
    std::string algorithm{};
    std::string segment{};
    std::string latency{};
    std::string bandwidth{};
    std::string reduce{};
};

void add_collective_options(CLI::App& command, CollectiveQuestion& question);

/// What was asked, understood.
struct AskedCollective {
    schedule::Workload workload{};
    schedule::Profile profile{};
    std::uint32_t root = 0;
};

/// The operation of this name, if there is one.
std::optional<schedule::Collective> operation_named(std::string_view name);

/// "all_reduce, reduce, ..."
std::string operation_names();

/// invalid_argument: "x" is no operation; allowed: ...
Error not_allowed(std::string_view what, std::string_view given, std::string_view allowed);

/// What is not asked is as it is set. Fails with invalid_argument, and says what is allowed, or
/// with bad_config.
Result<AskedCollective> understood(const CollectiveQuestion& question,
                                   const std::vector<ConfigFlag>& flags);

/// What each rank does, for `choice` of this collective. Fails with limit_exceeded when that is
/// more than fits in memory.
Result<std::vector<schedule::Schedule>> all_schedules(const AskedCollective& collective,
                                                      const schedule::Choice& choice);

/// Bytes per second: "100Gbps" in bits, "1.5GB/s" in bytes; units of 1000.
Result<double> parse_rate(std::string_view text);

std::string as_time(double seconds);

/// Prints the answer, or why there is none; the exit code.
int say(const Result<std::string>& answer);

}  // namespace nexar
