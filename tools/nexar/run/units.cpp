#include "run/units.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/config.hpp"
#include "run/binding.hpp"

namespace nexar::run {

namespace {

constexpr std::array<std::string_view, 6> kRankVariables = {"NEXAR_JOIN",       "NEXAR_RANK",
                                                            "NEXAR_WORLD_SIZE", "NEXAR_LOCAL_RANK",
                                                            "NEXAR_LOCAL_SIZE", "NEXAR_RESTARTED"};

std::string_view name_of(std::string_view variable) {
    return variable.substr(0, variable.find('='));
}

/// Becomes ssh. $1 is the host, $2 the command to run there, $3 the connection timeout in seconds,
/// and $4 the interval of ssh's keep-alive probes in seconds; ssh gives up after two. Command-line
/// options would override the user's ssh configuration, so they are left out where `ssh -G` shows
/// that the configuration sets them. BatchMode, because a user cannot answer the password prompts
/// of several ssh processes at the same time.
constexpr const char* kStartSsh =
    "said=$(ssh -G -- \"$1\" 2>/dev/null </dev/null)\n"
    "connect=\"-o ConnectTimeout=$3\"\n"
    "alive=\"-o ServerAliveInterval=$4 -o ServerAliveCountMax=2\"\n"
    "case $said in *'connecttimeout '[0-9]*) connect= ;; esac\n"
    "case $said in *'serveraliveinterval '[1-9]*) alive= ;; esac\n"
    "exec ssh -T -o BatchMode=yes $connect $alive -- \"$1\" \"$2\"";

std::string whole_seconds(Duration time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return std::to_string(std::max<std::int64_t>(seconds.count(), 1));
}

std::string prefix(std::uint32_t rank, bool in_colour) {
    if (!in_colour) return fmt::format("[{}] ", rank);
    constexpr std::array kColours = {36, 33, 32, 35, 34, 31};
    return fmt::format("\x1b[{}m[{}]\x1b[0m ", kColours[rank % kColours.size()], rank);
}

}  // namespace

std::string prefix_after(std::string prefix, std::uint32_t restarts) {
    const std::size_t end = prefix.find(']');
    if (restarts > 0 && end != std::string::npos) {
        prefix.insert(end, fmt::format(".{}", restarts));
    }
    return prefix;
}

bool is_on_path(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;
    while (true) {
        const std::size_t colon = left.find(':');
        const std::string_view folder = left.substr(0, colon);
        const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, program);
        if (::access(file.c_str(), X_OK) == 0) return true;
        if (colon == std::string_view::npos) return false;
        left.remove_prefix(colon + 1);
    }
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
    std::vector<std::string> environment;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view name = name_of(*variable);
        const bool replaced = std::ranges::find(more, name, name_of) != more.end();
        const bool of_a_rank = std::ranges::find(kRankVariables, name) != kRankVariables.end();
        if (!replaced && !of_a_rank) environment.emplace_back(*variable);
    }
    environment.insert(environment.end(), more.begin(), more.end());
    return environment;
}

std::vector<std::string> setting_variables() {
    std::vector<std::string> settings;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view name = name_of(*variable);
        const bool is_setting = name.starts_with("NEXAR_") &&
                                std::ranges::find(kOtherVariables, name) == kOtherVariables.end();
        if (is_setting) settings.emplace_back(*variable);
    }
    return settings;
}

std::vector<Unit> rank_units(const Part& part) {
    const std::vector<std::string> shared = environment_with(part.environment);
    const std::vector<std::size_t> processors =
        part.bind ? own_processors() : std::vector<std::size_t>{};
    std::vector<Unit> units;
    units.reserve(part.count);
    for (std::uint32_t i = 0; i < part.count; ++i) {
        const std::uint32_t rank = part.first_rank + i;
        Unit unit{.name = fmt::format("rank {}", rank),
                  .first_rank = rank,
                  .output_prefix = prefix(rank, part.output_in_colour),
                  .errors_prefix = prefix(rank, part.errors_in_colour),
                  .command = part.command,
                  .environment = shared,
                  .processors = share_of(processors, i, part.count),
                  .gets_input = rank == 0,
                  .restarts = part.on_failure == OnFailure::restart};
        unit.environment.push_back(fmt::format("NEXAR_RANK={}", rank));
        unit.environment.push_back(fmt::format("NEXAR_WORLD_SIZE={}", part.world));
        unit.environment.push_back(fmt::format("NEXAR_LOCAL_RANK={}", i));
        unit.environment.push_back(fmt::format("NEXAR_LOCAL_SIZE={}", part.count));
        units.push_back(std::move(unit));
    }
    return units;
}

Unit host_unit(const HostShare& share, const Part& part, std::string_view remote_nexar) {
    const std::uint32_t last = share.first_rank + share.count - 1;
    const std::string ranks = share.count == 1
                                  ? fmt::format("rank {}", share.first_rank)
                                  : fmt::format("ranks {} to {}", share.first_rank, last);
    return {
        .name = fmt::format("host {} ({})", share.host, ranks),
        .first_rank = share.first_rank,
        .ranks = share.count,
        .remote_nexar = std::string(remote_nexar),
        .command = {"/bin/sh", "-c", kStartSsh, "ssh", share.host,
                    fmt::format("exec {} run-part", remote_nexar),
                    whole_seconds(part.host_timeout * 2 / 3), whole_seconds(part.host_timeout / 3)},
        .environment = environment_with({}),
        .header = [part](const std::string& join) {
            Part with_join = part;
            with_join.join = join;
            return encode(with_join);
        }};
}

}  // namespace nexar::run
