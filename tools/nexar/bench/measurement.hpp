#pragma once

#include <cstdint>
#include <nexar/communicator.hpp>
#include <string>

#include "bench/exercise.hpp"
#include "bench/plan.hpp"

namespace nexar::bench {

/// What one size gave; equal on all ranks. Of each time the largest that any rank had.
struct Measured {
    Extent extent{};
    std::string algorithm{};
    std::uint64_t iterations = 0;
    double mean = 0;  // seconds
    double p50 = 0;
    double p99 = 0;
    std::uint64_t wrong = 0;  // elements, of all ranks

    /// GB/s: the size by the time, and what a rank's way to the others carried of it, as nccl-tests
    /// computes both.
    double algorithm_bandwidth() const noexcept;
    double bus_bandwidth(const Subject& subject, std::uint32_t world) const noexcept;
};

/// Measures one size; all ranks call it together. Throws nexar::Error.
Measured measure(const Plan& plan, const Communicator& world, std::uint64_t size);

}  // namespace nexar::bench
