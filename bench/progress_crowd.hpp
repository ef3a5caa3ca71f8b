#pragma once

#include <chrono>
#include <cstdint>

namespace nexar::bench {

/// How the ranks of measure_barrier() wait: with the loop of nexar, or by the plain loops of
/// others.
enum class BarrierWait : std::uint8_t { progress, yield, spin };

struct BarrierOptions {
    int ranks = 2;
    BarrierWait wait = BarrierWait::progress;
    /// The spin budget of the loop.
    std::chrono::nanoseconds spin = std::chrono::microseconds(100);
    /// What one rank, each in turn, computes before each barrier.
    std::chrono::nanoseconds compute{};
    std::chrono::nanoseconds time = std::chrono::seconds(1);
};

/// The time in microseconds of a barrier between processes that send to each other through
/// shared memory, and wake each other through eventfds. Must be called before this process has
/// threads.
double measure_barrier(const BarrierOptions& options);

}  // namespace nexar::bench
