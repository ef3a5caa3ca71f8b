#pragma once

#include <chrono>
#include <cstdint>

namespace nexar::chaos {

// Faults that must not be noticed by any rank. Both report to GoogleTest every failed operation and
// every change of the world.

/// Kills and restarts the seed again and again while the ranks exchange traffic.
void restart_the_seed(std::chrono::seconds span, std::chrono::milliseconds every);

/// Lets the ranks communicate over a network that loses every tenth packet, while `hogs` processes
/// keep all processors busy.
void load_everything(std::chrono::seconds span, int hogs, std::uint64_t seed);

/// The value of an environment variable in seconds.
std::chrono::seconds span_from(const char* variable, std::chrono::seconds fallback);

}  // namespace nexar::chaos
