#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/types.hpp"

#include "base/config.hpp"

namespace nexar {

/// The program that starts the processes of a job. Detection tries them in this order: an earlier
/// one may run inside a later one, and is then the one that started this process.
enum class Launcher : std::uint8_t { nexar_run, torchrun, open_mpi, pmi, slurm, kubernetes };

/// "nexar run", "torchrun", "Open MPI", "PMI", "Slurm", "Kubernetes".
std::string_view name(Launcher launcher) noexcept;

/// The spelling in NEXAR_LAUNCHER: "nexar-run", "torchrun", "openmpi", "pmi", "slurm",
/// "kubernetes".
std::string_view keyword(Launcher launcher) noexcept;

/// Where the seed listens. The host is an unresolved name or an address.
struct SeedPlace {
    std::string host;
    std::uint16_t port = 0;

    friend bool operator==(const SeedPlace&, const SeedPlace&) = default;
};

/// The information that a launcher passed to this process.
struct Launch {
    static constexpr std::uint16_t kDefaultSeedPort = 7400;

    Launcher launcher = Launcher::nexar_run;
    Rank rank{};
    std::uint32_t world = 0;
    std::optional<std::uint32_t> local_rank{};  // index among the ranks of this host
    std::optional<std::uint32_t> local_size{};  // their number

    /// Where rank 0 hosts the seed of the job. Nullopt if NEXAR_JOIN names a seed that runs
    /// elsewhere.
    std::optional<SeedPlace> seed{};
    /// Addresses of seed->host, for hosts that cannot resolve its name.
    std::vector<std::string> seed_addresses{};
    /// Distinguishes this job from others of the same user; empty if the launcher does not name
    /// jobs. Equal on all ranks.
    std::string job{};
    /// The variables that this was read from, for the log.
    std::vector<std::string> variables{};

    bool hosts_seed() const noexcept { return seed.has_value() && rank == Rank(0); }
};

/// One line that says what was detected and from which variables.
std::string to_text(const Launch& launch);

/// Detects from the variables of a process how it was started; nullopt if they belong to no
/// launcher. Incomplete or impossible values, and launchers that contradict each other, give an
/// Error (bad_config) that names the variables, their values and the remedy, so that a process
/// never becomes a world of its own by mistake. The shell of a Slurm allocation for one task counts
/// as started without a launcher. Pure.
///
/// NEXAR_LAUNCHER=<keyword> restricts detection to one launcher, NEXAR_LAUNCHER=none disables it.
/// NEXAR_SEED_HOST (host, host:port or [v6]:port) and NEXAR_SEED_PORT override the address of rank
/// 0 that a launcher gives. Only the presence of NEXAR_JOIN matters here; its value is a secret.
Result<std::optional<Launch>> detect_launch(std::span<const NamedValue> environment);

/// The variables of this process that detect_launch() reads. NEXAR_JOIN has an empty value, and is
/// included even after join() has removed it from the environment. PMI_FD, a descriptor number that
/// differs between ranks, is replaced by the process at its other end, which is the same for all
/// ranks of a host. Empty in a program that runs with more privileges than its caller. Must not run
/// while another thread changes the environment.
std::vector<NamedValue> read_launch_environment();

}  // namespace nexar
