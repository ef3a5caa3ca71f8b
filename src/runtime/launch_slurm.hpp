#pragma once

#include <nexar/result.hpp>

#include "runtime/launch_claim.hpp"

namespace nexar {

/// Adds to `claim`, which has its numbers already, what Slurm says about the hosts of a step: where
/// rank 0 runs, and how many ranks share this node. Pure.
///
/// A step on one node has no host: its ranks meet on the loopback address, whatever the node is
/// called. On several nodes it is the first one, by its name and, where Slurm tells them, by
/// addresses: those of cloud nodes are in SLURM_NODE_ALIASES, and in a batch script srun itself
/// runs on the first node of the job, so that SLURM_LAUNCH_NODE_IPADDR is its address.
Result<void> read_slurm_hosts(LaunchVariables& variables, LaunchClaim& claim);

}  // namespace nexar
