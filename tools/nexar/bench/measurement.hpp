#pragma once

#include <cstdint>
#include <nexar/communicator.hpp>
#include <string>

#include "bench/exercise.hpp"
#include "bench/plan.hpp"

namespace nexar::bench {

/// The result for one size, equal on all ranks. Each time is the largest among the ranks.
struct Measured {
    Extent extent{};
    std::string algorithm{};
    std::uint64_t iterations = 0;
    double mean = 0;  // seconds
    double p50 = 0;
    double p99 = 0;
    std::uint64_t wrong = 0;  // elements on all ranks

    /// Both in GB/s and as nccl-tests computes them: the size divided by the time, and the part of
    /// it that a rank's connection to the others carried.
    double algorithm_bandwidth() const noexcept;
    double bus_bandwidth(const Subject& subject, std::uint32_t world) const noexcept;
};

/// Measures one size; all ranks call it together. Throws nexar::Error.
Measured measure(const Plan& plan, const Communicator& world, std::uint64_t size);

}  // namespace nexar::bench
