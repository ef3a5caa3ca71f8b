#pragma once

#include <nexar/result.hpp>

#include "runtime/launch_claim.hpp"

namespace nexar {

/// Adds Slurm's information about the hosts of a step to `claim`, which already has its numbers:
/// where rank 0 runs, and how many ranks share this host. Pure.
///
/// For a step on one node claim.host stays empty: its ranks meet on the loopback address. For
/// several nodes it is the name of the first one, with addresses if Slurm provides them: those of
/// cloud nodes are in SLURM_NODE_ALIASES, and in a batch script srun itself runs on the first node
/// of the job, so SLURM_LAUNCH_NODE_IPADDR is its address.
Result<void> read_slurm_hosts(LaunchVariables& variables, LaunchClaim& claim);

}  // namespace nexar
