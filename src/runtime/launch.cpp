#include "runtime/launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/printable.hpp"
#include "base/quantity.hpp"
#include "base/secret.hpp"
#include "base/try.hpp"
#include "runtime/config_sources.hpp"
#include "runtime/join_variable.hpp"
#include "runtime/launch_claim.hpp"

namespace nexar {

namespace {

constexpr std::array kLaunchers = {Launcher::nexar_run, Launcher::torchrun, Launcher::open_mpi,
                                   Launcher::pmi,       Launcher::slurm,    Launcher::kubernetes};

/// The launchers to try.
Result<std::vector<Launcher>> asked_launchers(std::span<const NamedValue> environment) {
    const std::string* const wanted = find_value(environment, "NEXAR_LAUNCHER");
    if (wanted == nullptr) return std::vector(kLaunchers.begin(), kLaunchers.end());
    if (*wanted == "none") return std::vector<Launcher>{};
    const auto found = std::ranges::find(kLaunchers, *wanted, keyword);
    if (found != kLaunchers.end()) return std::vector{*found};
    std::string known;
    for (const Launcher launcher : kLaunchers) known += fmt::format("{}, ", keyword(launcher));
    return bad_launch(fmt::format("NEXAR_LAUNCHER={} is not a known launcher; allowed: {}none",
                                  in_quotes(*wanted), known));
}

std::string numbers_text(const LaunchClaim& claim) {
    const auto text = [](std::optional<std::uint32_t> number) {
        return number ? fmt::to_string(*number) : std::string("unknown");
    };
    return fmt::format("{} says rank {} of {} ({})", name(claim.launcher), text(claim.rank),
                       text(claim.world), fmt::join(claim.variables, ", "));
}

Error contradiction(const LaunchClaim& one, const LaunchClaim& other) {
    return bad_launch(fmt::format(
        "two launchers contradict each other: {}, {}; unset the stale variables, or "
        "choose one with NEXAR_LAUNCHER={} or NEXAR_LAUNCHER={}",
        numbers_text(one), numbers_text(other), keyword(one.launcher), keyword(other.launcher)));
}

template <class T>
bool same_where_known(const std::optional<T>& a, const std::optional<T>& b) {
    return !a || !b || *a == *b;
}

/// Whether `inner` may run inside `outer`; both are complete. Launchers nest: on a Slurm cluster
/// srun starts one torchrun per host, and mpirun starts its daemons through srun.
bool may_nest(const LaunchClaim& inner, const LaunchClaim& outer) {
    if (inner.rank == outer.rank && inner.world == outer.world) return true;
    if (inner.by_hand) return false;
    const std::uint32_t outer_world = outer.world.value_or(0);
    switch (inner.launcher) {
        // One process starts all ranks.
        case Launcher::nexar_run:
            return outer_world == 1;
        // One process per host starts them.
        case Launcher::torchrun:
            return outer_world == 1 || outer.world == inner.parts;
        // If the inner world is smaller than the outer one, its variables are stale.
        default:
            return outer_world <= inner.world.value_or(0);
    }
}

/// Fills in what `claim` lacks from `other`, which describes the same process.
void learn(LaunchClaim& claim, const LaunchClaim& other) {
    if (claim.rank != other.rank || claim.world != other.world) return;
    if (!claim.local_rank) claim.local_rank = other.local_rank;
    if (!claim.local_size) claim.local_size = other.local_size;
    if (!claim.host) {
        claim.host = other.host;
        claim.host_addresses = other.host_addresses;
    }
    if (claim.job.empty()) claim.job = other.job;
}

/// Chooses one of the claims; the first takes precedence.
Result<LaunchClaim> choose(std::span<const LaunchClaim> claims) {
    const auto chosen_at = std::ranges::find_if(claims, &LaunchClaim::complete);
    if (chosen_at == claims.end()) {
        return bad_launch(claims.front().missing +
                          "; or set NEXAR_LAUNCHER=none for a process that no launcher started");
    }
    LaunchClaim chosen = *chosen_at;
    for (const LaunchClaim& stronger : std::span(claims.begin(), chosen_at)) {
        const bool agree = same_where_known(stronger.rank, chosen.rank) &&
                           same_where_known(stronger.world, chosen.world) &&
                           same_where_known(stronger.local_rank, chosen.local_rank);
        if (!agree) return contradiction(stronger, chosen);
    }
    for (const LaunchClaim& weaker : std::span(chosen_at + 1, claims.end())) {
        if (!weaker.complete()) continue;
        if (!may_nest(chosen, weaker)) return contradiction(chosen, weaker);
        learn(chosen, weaker);
    }
    return chosen;
}

/// Whether this is the batch script or the shell of a Slurm allocation for one task: the program is
/// that task, whether srun starts it or not.
bool is_only_task(std::span<const LaunchClaim> claims) {
    return claims.size() == 1 && claims[0].launcher == Launcher::slurm && !claims[0].complete() &&
           claims[0].world == 1U;
}

/// FNV-1a: the same on every rank, whatever the compiler.
std::uint64_t hash(std::string_view text) {
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char c : text) {
        value ^= static_cast<unsigned char>(c);
        value *= 0x100000001b3;
    }
    return value;
}

/// On one host all ranks meet on the loopback address, at a port derived from the job's name, below
/// the kernel's ephemeral range. Another program that listens there does not know the secret of the
/// job, so a collision causes an error and no harm.
std::uint16_t port_of_job(std::string_view job) {
    constexpr std::uint64_t kFirst = 10240;
    constexpr std::uint64_t kEnd = 32768;
    return static_cast<std::uint16_t>(kFirst + hash(job) % (kEnd - kFirst));
}

Result<SeedPlace> seed_place(const LaunchClaim& claim, std::span<const NamedValue> environment) {
    LaunchVariables variables(environment);
    NEXAR_TRY_VALUE(own_port, variables.number("NEXAR_SEED_PORT", 1, 65535));
    const auto with_port = [&own_port](std::string host, std::optional<std::uint16_t> port) {
        if (own_port) port = static_cast<std::uint16_t>(*own_port);
        return SeedPlace{.host = std::move(host), .port = port.value_or(Launch::kDefaultSeedPort)};
    };
    if (const std::string* text = variables.find("NEXAR_SEED_HOST")) {
        NEXAR_TRY_VALUE(place, parse_seed_host("NEXAR_SEED_HOST", *text));
        if (place.port && own_port && *place.port != *own_port) {
            return bad_launch(
                fmt::format("NEXAR_SEED_HOST={} and NEXAR_SEED_PORT={} name different ports; "
                            "unset one of them",
                            in_quotes(*text), *own_port));
        }
        return with_port(place.host, place.port ? place.port : claim.port);
    }
    if (claim.host) return with_port(*claim.host, claim.port);
    if (claim.world == 1U) return with_port("127.0.0.1", std::nullopt);  // rank 0 is this process
    if (claim.world == claim.local_size && !claim.job.empty()) {
        return with_port("127.0.0.1", port_of_job(claim.job));
    }
    return bad_launch(fmt::format(
        "{}, but no variable says where rank 0 runs; set NEXAR_SEED_HOST on all ranks "
        "to the name or address of its host: NEXAR_SEED_HOST=node1 or NEXAR_SEED_HOST=node1:7400",
        numbers_text(claim)));
}

/// The process that created the socket `text`: for each rank, hydra's proxy creates one.
std::optional<pid_t> pmi_server(std::string_view text) {
    const auto descriptor = parse_integer(text);
    if (!descriptor || *descriptor < 0 || *descriptor > std::numeric_limits<int>::max()) {
        return std::nullopt;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    // 0 means a process outside the caller's PID namespace.
    if (::getsockopt(static_cast<int>(*descriptor), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        peer.pid <= 0) {
        return std::nullopt;
    }
    return peer.pid;
}

}  // namespace

std::string_view name(Launcher launcher) noexcept {
    switch (launcher) {
        case Launcher::nexar_run:
            return "nexar run";
        case Launcher::torchrun:
            return "torchrun";
        case Launcher::open_mpi:
            return "Open MPI";
        case Launcher::pmi:
            return "PMI";
        case Launcher::slurm:
            return "Slurm";
        case Launcher::kubernetes:
            return "Kubernetes";
    }
    return "unknown";
}

std::string_view keyword(Launcher launcher) noexcept {
    switch (launcher) {
        case Launcher::nexar_run:
            return "nexar-run";
        case Launcher::torchrun:
            return "torchrun";
        case Launcher::open_mpi:
            return "openmpi";
        case Launcher::pmi:
            return "pmi";
        case Launcher::slurm:
            return "slurm";
        case Launcher::kubernetes:
            return "kubernetes";
    }
    return "unknown";
}

std::string to_text(const Launch& launch) {
    std::string text = fmt::format("rank {} of {} by {} ({})", launch.rank.value(), launch.world,
                                   name(launch.launcher), fmt::join(launch.variables, ", "));
    if (launch.seed) {
        text +=
            fmt::format("; seed {} on rank 0 at {} port {}", launch.hosts_seed() ? "here" : "there",
                        printable(launch.seed->host), launch.seed->port);
    } else {
        text += "; seed from NEXAR_JOIN";
    }
    return text;
}

Result<std::optional<Launch>> detect_launch(std::span<const NamedValue> environment) {
    NEXAR_TRY_VALUE(launchers, asked_launchers(environment));
    std::vector<LaunchClaim> claims;
    for (const Launcher launcher : launchers) {
        NEXAR_TRY_VALUE(claim, read_claim(launcher, environment));
        if (claim) claims.push_back(std::move(*claim));
    }
    if (claims.empty()) {
        const std::string* const wanted = find_value(environment, "NEXAR_LAUNCHER");
        if (wanted == nullptr || *wanted == "none") return std::optional<Launch>{};
        return bad_launch(fmt::format(
            "NEXAR_LAUNCHER={}, but none of the variables of that launcher is set", *wanted));
    }
    if (is_only_task(claims) && find_value(environment, "NEXAR_LAUNCHER") == nullptr) {
        return std::optional<Launch>{};
    }
    NEXAR_TRY_VALUE(claim, choose(claims));
    Launch launch{.launcher = claim.launcher,
                  .rank = Rank(claim.rank.value_or(0)),
                  .world = claim.world.value_or(0),
                  .local_rank = claim.local_rank,
                  .local_size = claim.local_size,
                  .job = printable(claim.job, 256),
                  .variables = claim.variables};
    if (find_value(environment, "NEXAR_JOIN") == nullptr &&
        find_value(environment, "NEXAR_JOIN_FILE") == nullptr) {
        NEXAR_TRY_VALUE(place, seed_place(claim, environment));
        if (place.host == claim.host) launch.seed_addresses = claim.host_addresses;
        launch.seed = std::move(place);
    }
    return std::optional(std::move(launch));
}

std::vector<NamedValue> read_launch_environment() {
    const auto known = launch_variables();
    auto environment = read_variables([&](std::string_view variable) {
        return std::ranges::find(known, variable) != known.end();
    });
    bool has_join = false;
    for (NamedValue& variable : environment) {
        if (variable.name == "PMI_FD") {
            const auto server = pmi_server(variable.value);
            variable.value = server ? fmt::format("{}{}", kPmiServer, *server) : std::string();
        }
        if (variable.name != "NEXAR_JOIN") continue;
        has_join = true;
        wipe(std::as_writable_bytes(std::span(variable.value)));
        variable.value.clear();
    }
    if (!has_join && join_variable_was_taken()) environment.push_back({"NEXAR_JOIN", ""});
    return environment;
}

}  // namespace nexar
