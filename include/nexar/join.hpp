#pragma once

#include <chrono>
#include <nexar/export.hpp>
#include <nexar/node.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nexar {

/// How a program joins a cluster. Each value may also come from the environment, from files or from
/// a launcher; values set here take precedence.
struct JoinOptions {
    NodeOptions node{};
    /// The join string that `nexar token create` printed.
    std::string join_string{};
    std::optional<int> rank{};
    /// Settings by name, see `nexar config`.
    std::vector<std::pair<std::string, std::string>> settings{};
};

/// Joins a cluster and returns when this process is connected to all other members, at the latest
/// after the setting formation_timeout. After 5 s it logs what it is waiting for. If the cluster
/// has formed already, this process becomes a member with a new rank, and Node::world() waits until
/// the others take it in.
///
/// A pair is connected when both ends know it. Other pairs may still be connecting when join()
/// returns: this process may finish and leave, and the others still form the cluster. If a member
/// leaves or is lost before it was connected to all others, join() fails at once with link_closed
/// in every member that still waits for any connection; the error names the lost member. Operations
/// of members whose join() has returned fail with the same explanation.
///
/// A join string is a secret. If it comes from NEXAR_JOIN, join() removes that variable from the
/// environment, so that child processes do not inherit it, and remembers it for later calls in this
/// process. The first join() must therefore not run while another thread reads or changes the
/// environment.
///
/// join() uses the first of these sources that is present: `options`; NEXAR_JOIN or the file that
/// NEXAR_JOIN_FILE names (set by `nexar run` or by hand); torchrun; Open MPI; PMI; Slurm;
/// Kubernetes. If none is present, or the launcher started only one task, the process is a world of
/// one: it has rank 0, needs no seed or secret, listens on loopback unless the setting `listen`
/// names an address, and logs one line of level info. With the setting require_cluster
/// (NEXAR_REQUIRE_CLUSTER=1) that is an error.
///
/// Throws Error: bad_config if the launcher's variables are contradictory or incomplete, or if no
/// source names a cluster and a world of one is not acceptable (require_cluster, NEXAR_SEED_HOST, a
/// rank other than 0); unauthenticated if the seed is not the expected one or rejects this process;
/// link_closed or membership_changed if a member left or was lost before all were connected;
/// evicted if that member is this process; timed_out, naming the members that are missing; closed
/// if a launcher knows that the cluster cannot form; aborted if a member aborted the program in the
/// meantime.
NEXAR_EXPORT Node join(const JoinOptions& options = {});

/// The same, but also reads the flags --nexar-... and removes them from the command line.
NEXAR_EXPORT Node join(int& argc, char** argv, const JoinOptions& options = {});

}  // namespace nexar
