#pragma once

#include <cstdint>
#include <functional>
#include <nexar/communicator.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "command.hpp"

namespace nexar::bench {

/// Where the ranks of a measurement come from, as it stands on the command line.
struct Ranks {
    std::optional<std::uint32_t> started{};  // here; else this is a rank of a launcher's world
    std::string protection{};                // empty: as it is set
};

void add_rank_options(CLI::App& command, Ranks& ranks);

/// What is done by the ranks of one world.
struct Job {
    /// Whether a world of this size can do it; an Error (invalid_argument) says why not.
    std::function<Result<void>(std::uint32_t world)> fits;
    /// One rank's part, with the settings that it has. Gives the exit code; throws nexar::Error.
    std::function<int(const Communicator& world, const Config& config)> take_part;
};

/// Starts ranks on this machine and a seed for them, each with this command line again, or is one
/// of them, and gives the exit code. What rank 0 prints appears as it is.
Result<int> run_job(const Job& job, const Ranks& ranks, const CLI::App& command,
                    const Invocation& invocation);

/// Sets the exit code that `run` gives, or says what its Error is: throws CLI::ValidationError for
/// what is wrong with the command line.
void answer(const CLI::App& command, Invocation& invocation,
            const std::function<Result<int>()>& run);

}  // namespace nexar::bench
