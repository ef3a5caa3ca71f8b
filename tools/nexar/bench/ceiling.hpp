#pragma once

#include <cstdint>
#include <nexar/communicator.hpp>
#include <vector>

#include "bench/measurement.hpp"
#include "bench/plan.hpp"

namespace nexar::bench {

// What a machine without any costs of communication could reach, for comparison. With n ranks and a
// vector of S bytes, one iteration
//
//   operation                sends at least      reads inputs and writes outputs of
//   all_reduce               2 (n-1) S           2 n S
//   reduce                   (n-1) S             (n+1) S
//   broadcast                (n-1) S             n S
//   all_gather               (n-1) S             (n+1) S
//   gather, scatter          (n-1) S / n         2 S
//   reduce_scatter           (n-1) S             (n+1) S
//   all_to_all               (n-1) S             2 n S
//   scan, exclusive_scan     (n-1) S             2 n S
//   barrier                  0                   0
//   latency                  2 S                 2 S (one direction)
//   bandwidth                64 S                2 S (one message)
//   exchange                 2 S                 4 S

/// Bytes that the ranks must send to each other in one iteration, all ranks together.
double moved_bytes(const Subject& subject, std::uint32_t world, std::uint64_t bytes) noexcept;

/// Bytes that must be read from and written to memory in the time that is reported: every input
/// once, every output once, all ranks together.
double memory_bytes(const Subject& subject, std::uint32_t world, std::uint64_t bytes) noexcept;

/// For each size of the plan, the bytes per second that memcpy reads and writes in vectors of that
/// size, in the ranks that could copy at the same time: one for latency and bandwidth, two for
/// exchange, otherwise all. All ranks call it together and get the same. Throws nexar::Error.
std::vector<double> copy_rates(const Plan& plan, const Communicator& world);

/// The time for memory_bytes() at this rate, as a part of the measured median; 0 without data.
double part_of_ceiling(const Subject& subject, std::uint32_t world, const Measured& measured,
                       double copy_rate) noexcept;

}  // namespace nexar::bench
