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
    double cpu = 0;           // seconds of processor time in all iterations, of all ranks together

    /// Both in GB/s and as nccl-tests computes them: the size divided by the time, and the part of
    /// it that a rank's connection to the others carried.
    double algorithm_bandwidth() const noexcept;
    double bus_bandwidth(const Subject& subject, std::uint32_t world) const noexcept;

    /// Seconds of processor time per GB that the ranks must send to each other, see moved_bytes();
    /// 0 if they send no data.
    double cpu_per_gigabyte(const Subject& subject, std::uint32_t world) const noexcept;
};

/// Measures one size; all ranks call it together. Throws nexar::Error.
Measured measure(const Plan& plan, const Communicator& world, std::uint64_t size);

}  // namespace nexar::bench
