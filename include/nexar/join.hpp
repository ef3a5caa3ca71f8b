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

/// Becomes a member of a cluster and returns when this process is connected with all other members,
/// at the latest after the setting formation_timeout. Says in the log after 5 s what it waits for.
///
/// A pair is connected when both ends know it. Other pairs may still be connecting when join()
/// returns: this process may run to its end and leave, and the others still form. A member that
/// leaves before it was connected with all others, or is lost, ends the join() of those that wait
/// for it, and of those that are not complete themselves, at once with link_closed: the error names
/// it. Operations of members whose join() has returned fail with the same explanation.
///
/// A join string is a secret. If it comes from NEXAR_JOIN, join() removes that variable from the
/// environment: children do not inherit it, and a later join() of this process remembers it. So the
/// first join() must not run while another thread reads or changes the environment.
///
/// Looks for, in this order: `options`; NEXAR_JOIN or the file that NEXAR_JOIN_FILE names (from
/// `nexar run`, or by hand); torchrun; Open MPI; PMI; Slurm; Kubernetes. A process that none of
/// these speaks of, or whose launcher names one task only, is a world of one: it has rank 0, needs
/// no seed or secret, listens on loopback unless the setting `listen` says where, and logs one line
/// of level info. With the setting require_cluster (NEXAR_REQUIRE_CLUSTER=1) that is an error.
///
/// Throws Error: bad_config when a launcher contradicts itself or says too little, or nothing says
/// where to join and a world of one will not do (require_cluster, NEXAR_SEED_HOST, a rank other
/// than 0); unauthenticated when the seed is not the one that was meant or does not let this
/// process in; link_closed when a member left before all were connected; timed_out with whom it
/// waited for; aborted when a member aborted the program meanwhile.
NEXAR_EXPORT Node join(const JoinOptions& options = {});

/// The same, and takes the flags --nexar-... out of the command line.
NEXAR_EXPORT Node join(int& argc, char** argv, const JoinOptions& options = {});

}  // namespace nexar
