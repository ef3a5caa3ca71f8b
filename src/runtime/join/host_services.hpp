#pragma once

#include <cstdint>
#include <functional>
#include <nexar/result.hpp>
#include <span>

#include "base/identity.hpp"
#include "security/key_pair.hpp"
#include "security/wall_time.hpp"

namespace nexar::runtime {

/// The wall clock and the randomness that joins and seeds use. They take monotonic time as a
/// parameter, like the engine, and both from here, so that a join can run on virtual time. Only the
/// thread that drives the node or the seed calls these functions; none may be empty except
/// `link_random`.
struct HostServices {
    security::WallClock wall_clock{};
    std::function<Result<security::KeyPair>()> new_key{};
    std::function<Result<NodeId>()> new_node_id{};
    std::function<Result<ClusterId>()> new_cluster_id{};
    /// Unpredictable bytes for the links; empty: the machine's.
    std::function<void(std::span<std::uint8_t>)> link_random{};

    /// Those of this machine. Only the shell calls it: join(), Seed, local_cluster().
    static HostServices of_this_machine();
};

}  // namespace nexar::runtime
