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

/// Who starts the processes of a job. In the order in which they are asked: one further up may run
/// inside of one further down, and is then who started this process.
enum class Launcher : std::uint8_t { nexar_run, torchrun, open_mpi, pmi, slurm, kubernetes };

/// "nexar run", "torchrun", "Open MPI", "PMI", "Slurm", "Kubernetes".
std::string_view name(Launcher launcher) noexcept;

/// As NEXAR_LAUNCHER spells it: "nexar-run", "torchrun", "openmpi", "pmi", "slurm", "kubernetes".
std::string_view keyword(Launcher launcher) noexcept;

/// Where the seed listens: a name or a number, not looked up.
struct SeedPlace {
    std::string host;
    std::uint16_t port = 0;

    friend bool operator==(const SeedPlace&, const SeedPlace&) = default;
};

/// What a launcher told this process.
struct Launch {
    static constexpr std::uint16_t kDefaultSeedPort = 7400;

    Launcher launcher = Launcher::nexar_run;
    Rank rank{};
    std::uint32_t world = 0;
    std::optional<std::uint32_t> local_rank{};  // index among the ranks of this host
    std::optional<std::uint32_t> local_size{};  // their number

    /// Where rank 0 hosts the seed of the job. None where NEXAR_JOIN says how to reach a seed that
    /// runs elsewhere.
    std::optional<SeedPlace> seed{};
    /// Addresses of seed->host, for where its name cannot be looked up.
    std::vector<std::string> seed_addresses{};
    /// Tells this job from others of the same user, where the launcher has a name for it; else
    /// empty. Equal on all ranks.
    std::string job{};
    /// The variables that say all this, for the log.
    std::vector<std::string> variables{};

    bool hosts_seed() const noexcept { return seed.has_value() && rank == Rank(0); }
};

/// One line: what was detected and from where.
std::string to_text(const Launch& launch);

/// What the variables of a process say about how it was started; nothing when they speak of no
/// launcher. A launcher that is there and says too little, or what cannot be, and two that
/// contradict each other, are an Error (bad_config) that names variables, values and the way out:
/// a process is never taken for a world of its own by mistake. The shell of a Slurm allocation for
/// one task speaks of no launcher. Pure.
///
/// NEXAR_LAUNCHER=<keyword> looks at one launcher only, NEXAR_LAUNCHER=none at none.
/// NEXAR_SEED_HOST (host, host:port or [v6]:port) and NEXAR_SEED_PORT go before what a launcher
/// says of rank 0's address. Of NEXAR_JOIN only whether it is there is looked at; its value is a
/// secret.
Result<std::optional<Launch>> detect_launch(std::span<const NamedValue> environment);

/// The variables of this process that detect_launch() looks at. NEXAR_JOIN comes without its value,
/// also after join() has taken it out of the environment. PMI_FD, a number that differs by rank,
/// comes as the process at the other end of that descriptor, which is the same for all ranks of a
/// host. None in a program that runs with more rights than its caller. Must not run while another
/// thread changes the environment.
std::vector<NamedValue> read_launch_environment();

}  // namespace nexar
