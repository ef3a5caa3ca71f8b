#include "runtime/launch_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/printable.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"
#include "runtime/launch_slurm.hpp"
#include "runtime/node_list.hpp"
#include "wire/limits.hpp"

namespace nexar {

namespace {

constexpr std::uint32_t kMostRanks = wire::kMaxViewMembers;  // of a cluster that a seed can form
constexpr std::uint32_t kMostPort = 65535;
// Step ids from here on do not belong to srun: the shell of salloc, a batch script.
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;
constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

constexpr auto kLaunchVariables = std::to_array<std::string_view>({
    "NEXAR_JOIN",
    "NEXAR_JOIN_FILE",
    "NEXAR_LAUNCHER",
    "NEXAR_LOCAL_RANK",
    "NEXAR_LOCAL_SIZE",
    "NEXAR_RANK",
    "NEXAR_SEED_HOST",
    "NEXAR_SEED_PORT",
    "NEXAR_WORLD_SIZE",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_LOCAL_RANK",
    "PMI_LOCAL_SIZE",
    "PMI_FD",
    "PMI_JOBID",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "ENVIRONMENT",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOBID",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_LOCALID",
    "SLURM_NODE_ALIASES",
    "SLURM_NODEID",
    "SLURM_NODELIST",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "SLURM_STEPID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "JOB_COMPLETION_INDEX",
});

/// The variables in which one launcher passes its numbers; the first of each list that is set
/// counts.
struct NumberNames {
    std::array<std::string_view, 2> rank{};
    std::array<std::string_view, 2> world{};
    std::array<std::string_view, 2> local_rank{};
    std::array<std::string_view, 2> local_size{};
};

Result<std::optional<std::uint32_t>> first_number(LaunchVariables& variables,
                                                  const std::array<std::string_view, 2>& names,
                                                  std::uint32_t least, std::uint32_t most) {
    for (const std::string_view name : names) {
        if (name.empty()) continue;
        NEXAR_TRY_VALUE(number, variables.number(name, least, most));
        if (number) return number;
    }
    return std::optional<std::uint32_t>{};
}

Result<LaunchClaim> read_numbers(LaunchVariables& variables, const NumberNames& names) {
    LaunchClaim claim;
    NEXAR_TRY_VALUE(rank, first_number(variables, names.rank, 0, kMostRanks - 1));
    NEXAR_TRY_VALUE(world, first_number(variables, names.world, 1, kMostRanks));
    NEXAR_TRY_VALUE(local_rank, first_number(variables, names.local_rank, 0, kMostRanks - 1));
    NEXAR_TRY_VALUE(local_size, first_number(variables, names.local_size, 1, kMostRanks));
    claim.rank = rank;
    claim.world = world;
    claim.local_rank = local_rank;
    claim.local_size = local_size;
    if (!rank) claim.missing = fmt::format("{} is not set", names.rank[0]);
    if (rank && !world) claim.missing = fmt::format("{} is not set", names.world[0]);
    return claim;
}

Result<std::optional<LaunchClaim>> read_nexar_run(LaunchVariables& variables) {
    // A user may set NEXAR_JOIN (the join string of a seed) or NEXAR_WORLD_SIZE (the size of a
    // Kubernetes job) without NEXAR_RANK.
    if (variables.find("NEXAR_RANK") == nullptr) return std::optional<LaunchClaim>{};
    NEXAR_TRY_VALUE(claim, read_numbers(variables, {.rank = {"NEXAR_RANK"},
                                                    .world = {"NEXAR_WORLD_SIZE"},
                                                    .local_rank = {"NEXAR_LOCAL_RANK"},
                                                    .local_size = {"NEXAR_LOCAL_SIZE"}}));
    if (variables.find("NEXAR_JOIN") == nullptr && variables.find("NEXAR_JOIN_FILE") == nullptr) {
        claim.missing = "NEXAR_JOIN is not set";
    }
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_torchrun(LaunchVariables& variables) {
    const std::string* const run = variables.find("TORCHELASTIC_RUN_ID");
    NEXAR_TRY_VALUE(claim, read_numbers(variables, {.rank = {"RANK"},
                                                    .world = {"WORLD_SIZE"},
                                                    .local_rank = {"LOCAL_RANK"},
                                                    .local_size = {"LOCAL_WORLD_SIZE"}}));
    if (variables.seen().empty()) return std::optional<LaunchClaim>{};
    claim.by_hand = run == nullptr;
    if (run != nullptr) claim.job = *run;
    NEXAR_TRY_VALUE(parts, variables.number("GROUP_WORLD_SIZE", 1, kMostRanks));
    claim.parts = parts;
    if (!parts && claim.world && claim.local_size) {
        claim.parts = (*claim.world + *claim.local_size - 1) / *claim.local_size;
    }
    // This is the TCP port of torchrun's store. The seed uses UDP, so they do not conflict.
    NEXAR_TRY_VALUE(port, variables.number("MASTER_PORT", 1, kMostPort));
    if (port) claim.port = static_cast<std::uint16_t>(*port);
    if (const std::string* host = variables.find("MASTER_ADDR")) {
        NEXAR_TRY_VALUE(parsed, parse_seed_host("MASTER_ADDR", *host));
        claim.host = parsed.host;
    }
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_open_mpi(LaunchVariables& variables) {
    NEXAR_TRY_VALUE(claim, read_numbers(variables, {.rank = {"OMPI_COMM_WORLD_RANK"},
                                                    .world = {"OMPI_COMM_WORLD_SIZE"},
                                                    .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
                                                    .local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"}}));
    if (variables.seen().empty()) return std::optional<LaunchClaim>{};
    if (const std::string* job = variables.find("PMIX_NAMESPACE")) claim.job = *job;
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_pmi(LaunchVariables& variables) {
    NEXAR_TRY_VALUE(claim,
                    read_numbers(variables, {.rank = {"PMI_RANK", "PMIX_RANK"},
                                             .world = {"PMI_SIZE"},
                                             .local_rank = {"PMI_LOCAL_RANK", "MPI_LOCALRANKID"},
                                             .local_size = {"PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"}}));
    if (!claim.rank && !claim.world) return std::optional<LaunchClaim>{};
    // PMIx passes the size only to its library.
    if (claim.rank && variables.find("PMI_RANK") == nullptr) {
        claim.missing = "PMIx does not pass the size of the world in a variable";
    }
    for (const std::string_view name : {"PMI_JOBID", "PMIX_NAMESPACE"}) {
        const std::string* const job = variables.find(name);
        if (job != nullptr && claim.job.empty()) claim.job = *job;
    }
    // Hydra, the launcher of MPICH, does not name the job. On one host its ranks share the process
    // that serves them; several hosts have one each.
    const std::string* const server = variables.find("PMI_FD");
    const bool on_one_host = claim.world && claim.world == claim.local_size;
    if (claim.job.empty() && on_one_host && server && server->starts_with(kPmiServer)) {
        claim.job = *server;
    }
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_slurm(LaunchVariables& variables) {
    const std::string* job = variables.find("SLURM_JOB_ID");
    if (job == nullptr) job = variables.find("SLURM_JOBID");
    NEXAR_TRY_VALUE(step,
                    first_number(variables, {"SLURM_STEP_ID", "SLURM_STEPID"}, 0, kAnyNumber));
    NEXAR_TRY_VALUE(claim,
                    read_numbers(variables, {.rank = {"SLURM_PROCID"},
                                             .world = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
                                             .local_rank = {"SLURM_LOCALID"}}));
    if (variables.seen().empty()) return std::optional<LaunchClaim>{};
    if (!step || *step >= kFirstSpecialStep) {
        // Such a shell is itself a step of one task, regardless of the size of the job.
        NEXAR_TRY_VALUE(tasks, variables.number("SLURM_NTASKS", 1, kMostRanks));
        claim.world = tasks;
        claim.missing =
            "this is a batch script or the shell of an allocation, not a job step; use srun to "
            "start the program";
        return std::optional(std::move(claim));
    }
    claim.job = fmt::format("{}.{}", job == nullptr ? "" : *job, *step);
    NEXAR_TRY(read_slurm_hosts(variables, claim));
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_kubernetes(LaunchVariables& variables) {
    // Under `nexar run` inside a pod, NEXAR_WORLD_SIZE is not the size of the Kubernetes job.
    if (variables.find("JOB_COMPLETION_INDEX") == nullptr ||
        variables.find("NEXAR_RANK") != nullptr) {
        return std::optional<LaunchClaim>{};
    }
    NEXAR_TRY_VALUE(claim, read_numbers(variables, {.rank = {"JOB_COMPLETION_INDEX"},
                                                    .world = {"NEXAR_WORLD_SIZE"}}));
    if (!claim.complete()) claim.missing += "; set it to spec.completions in the pod's template";
    return std::optional(std::move(claim));
}

Result<std::optional<LaunchClaim>> read_one(Launcher launcher, LaunchVariables& variables) {
    switch (launcher) {
        case Launcher::nexar_run:
            return read_nexar_run(variables);
        case Launcher::torchrun:
            return read_torchrun(variables);
        case Launcher::open_mpi:
            return read_open_mpi(variables);
        case Launcher::pmi:
            return read_pmi(variables);
        case Launcher::slurm:
            return read_slurm(variables);
        case Launcher::kubernetes:
            return read_kubernetes(variables);
    }
    return std::optional<LaunchClaim>{};
}

Result<void> check_numbers(const LaunchClaim& claim, const std::string& seen) {
    // Unknown values pass every check.
    const std::uint32_t rank = claim.rank.value_or(0);
    const std::uint32_t world = claim.world.value_or(kAnyNumber);
    const std::uint32_t local_rank = claim.local_rank.value_or(0);
    const std::uint32_t local_size = claim.local_size.value_or(kAnyNumber);
    if (rank >= world) {
        return bad_launch(fmt::format("rank {} is not less than the size of the world, {} ({})",
                                      rank, world, seen));
    }
    if (local_rank >= local_size) {
        return bad_launch(
            fmt::format("local rank {} is not less than the number of ranks on this host, {} ({})",
                        local_rank, local_size, seen));
    }
    if (claim.local_size && local_size > world) {
        return bad_launch(
            fmt::format("this host has {} ranks, but the whole world has only {} ({})", local_size,
                        world, seen));
    }
    return {};
}

}  // namespace

bool is_host(std::string_view text) {
    const auto allowed = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("-_.:%").find(c) != std::string_view::npos;
    };
    return !text.empty() && text.size() <= NodeList::kMaxHostBytes &&
           std::ranges::all_of(text, allowed);
}

std::span<const std::string_view> launch_variables() noexcept {
    return kLaunchVariables;
}

const std::string* LaunchVariables::find(std::string_view name) {
    const std::string* const value = find_value(environment_, name);
    if (value == nullptr) return nullptr;
    if (std::ranges::find(seen_, name) == seen_.end()) seen_.emplace_back(name);
    return value;
}

Result<std::optional<std::uint32_t>> LaunchVariables::number(std::string_view name,
                                                             std::uint32_t least,
                                                             std::uint32_t most) {
    const std::string* const text = find(name);
    if (text == nullptr) return std::optional<std::uint32_t>{};
    const auto value = parse_integer(*text);
    if (!value || *value < least || *value > most) {
        return bad_launch(
            fmt::format("{}={} is not a whole number from {} to {}; correct or unset it", name,
                        in_quotes(*text), least, most));
    }
    return std::optional(static_cast<std::uint32_t>(*value));
}

std::string LaunchVariables::seen_text() const {
    std::string text;
    for (const std::string& name : seen_) {
        if (!text.empty()) text += ", ";
        // A join string is a secret.
        if (name == "NEXAR_JOIN") {
            text += name;
            continue;
        }
        const auto found = std::ranges::find(environment_, name, &NamedValue::name);
        text += fmt::format("{}={}", name, printable(found->value, 64));
    }
    return text;
}

Result<std::optional<LaunchClaim>> read_claim(Launcher launcher,
                                              std::span<const NamedValue> environment) {
    LaunchVariables variables(environment);
    auto read = read_one(launcher, variables);
    if (!read) return bad_launch(fmt::format("{}: {}", name(launcher), read.error().cause()));
    std::optional<LaunchClaim>& claim = *read;
    if (!claim) return read;
    LaunchClaim& found = *claim;
    found.launcher = launcher;
    found.variables = variables.seen();
    const std::string seen = variables.seen_text();
    if (const auto possible = check_numbers(found, seen); !possible) {
        return bad_launch(fmt::format("{}: {}", name(launcher), possible.error().cause()));
    }
    if (!found.complete()) {
        found.missing = fmt::format("{}: {} ({})", name(launcher), found.missing, seen);
    }
    return read;
}

Result<HostAndPort> parse_seed_host(std::string_view variable, std::string_view text) {
    const auto wrong = [&] {
        return bad_launch(
            fmt::format("{}={} is not a host; allowed: a name or address, optionally with a "
                        "port: node1, node1:7400, [fd00::1]:7400",
                        variable, in_quotes(text)));
    };
    HostAndPort place{.host = std::string(text)};
    std::string_view port;
    const std::size_t colon = text.rfind(':');
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) return wrong();
        place.host = text.substr(1, close - 1);
        port = text.substr(close + 1);
        if (!port.empty() && !port.starts_with(':')) return wrong();
        if (port == ":") return wrong();
        if (!port.empty()) port.remove_prefix(1);
    } else if (colon != std::string_view::npos && text.find(':') == colon) {
        place.host = text.substr(0, colon);
        port = text.substr(colon + 1);
        if (port.empty()) return wrong();
    }
    if (!is_host(place.host)) return wrong();
    if (!port.empty()) {
        const auto number = parse_integer(port);
        if (!number || *number < 1 || *number > std::int64_t{kMostPort}) return wrong();
        place.port = static_cast<std::uint16_t>(*number);
    }
    return place;
}

}  // namespace nexar
