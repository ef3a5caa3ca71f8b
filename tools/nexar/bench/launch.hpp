#pragma once

#include <cstdint>
#include <functional>
#include <nexar/node.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "command.hpp"

namespace nexar::bench {

/// How to obtain the ranks of a measurement, as given on the command line.
struct Ranks {
    std::optional<std::uint32_t> started{};  // absent: this is a rank of a launcher's world
    std::string protection{};                // empty: the setting's value
    std::string link{};                      // empty: the setting's value
};

void add_rank_options(CLI::App& command, Ranks& ranks);

/// The work of the ranks of one world.
struct Job {
    /// Fails with invalid_argument if a world of this size cannot do the job.
    std::function<Result<void>(std::uint32_t world)> fits;
    /// One rank's part, given its configuration. Returns the exit code; throws nexar::Error.
    std::function<int(const Node& node, const Config& config)> take_part;
};

/// Runs the job and returns the exit code. With a number of ranks, starts a seed and that many
/// copies of this command on this machine; otherwise runs as one rank. The output of rank 0 appears
/// without a prefix.
Result<int> run_job(const Job& job, const Ranks& ranks, const CLI::App& command,
                    const Invocation& invocation);

/// Sets the exit code to the result of `run`, or reports its Error: throws CLI::ValidationError for
/// an invalid command line and prints any other.
void answer(const CLI::App& command, Invocation& invocation,
            const std::function<Result<int>()>& run);

}  // namespace nexar::bench
