#pragma once

#include <chrono>
#include <cstdint>

namespace nexar::testing {

struct KillPlan {
    int kills = 0;
    int world = 4;
    std::uint64_t seed = 0;
    std::chrono::microseconds latest = std::chrono::milliseconds(40);  // after the traffic began
};

/// Kills one rank after the other in the middle of shared-memory traffic, each time in a new world
/// of the same surviving processes. Expects that every operation that needs the killed rank fails
/// within 100 ms with an error that names it, that the survivors can still talk to each other, and
/// that neither they nor the killed rank leave anything behind.
void survive_kills(const KillPlan& plan);

struct StopPlan {
    int stops = 1;
    std::chrono::milliseconds each{};
    int world = 4;
    std::uint64_t seed = 0;
};

/// Stops a rank in the middle of shared-memory traffic with SIGSTOP and continues it. Expects that
/// the traffic goes on and that all results are right.
void survive_stops(const StopPlan& plan);

}  // namespace nexar::testing
