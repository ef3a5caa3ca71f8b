#pragma once

#include <chrono>
#include <nexar/export.hpp>
#include <nexar/node.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nexar {

/// What a program may say about how it joins. All of it may also come from the environment, from
/// files and from a launcher; what stands here wins.
struct JoinOptions {
    NodeOptions node{};
    /// The line that `nexar token create` printed.
    std::string join_string{};
    std::optional<int> rank{};
    /// Settings by their names, see `nexar config`.
    std::vector<std::pair<std::string, std::string>> settings{};
};

/// Becomes a member of a cluster and returns when all members are connected, at the latest after
/// the setting formation_timeout.
///
/// Looks for, in this order: `options`; NEXAR_JOIN or the file that NEXAR_JOIN_FILE names (from
/// `nexar run`, or by hand); torchrun; Open MPI; PMI; Slurm; Kubernetes. Throws Error: bad_config
/// when none of these says where to join or one contradicts itself, unauthenticated when the seed
/// is not the one that was meant or does not let this process in, timed_out with whom it waited
/// for.
NEXAR_EXPORT Node join(const JoinOptions& options = {});

/// The same, and takes the flags --nexar-... out of the command line.
NEXAR_EXPORT Node join(int& argc, char** argv, const JoinOptions& options = {});

}  // namespace nexar
