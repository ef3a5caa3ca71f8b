#pragma once

#include <algorithm>

namespace nexar::schedule {

/// What a fabric costs, in seconds: the LogGP model (Alexandrov et al., 1995), with two more terms
/// for links whose packets are made and opened by the processors of the ranks. A message of b bytes
/// occupies its sender and then its receiver for `per_message + b * per_byte` each, and its first
/// byte arrives `latency` after it left; its first `fill_bytes` are worked on by one after the
/// other, the rest by both at the same time. A rank that sends and receives at the same time needs
/// `both_byte` for a byte each way. As they are, about what two processes on one machine have over
/// QUIC (bench/choice.sh --ranks 2).
struct Rates {
    double latency = 10e-6;          // alpha
    double per_message = 3e-6;       // what one more message costs a rank that is busy with others
    double per_byte = 1.0 / 1.3e9;   // beta
    double both_byte = 1.0 / 0.7e9;  // at least per_byte
    double reduce_byte = 1.0 / 8e9;  // gamma
    double copy_byte = 1.0 / 12e9;
    double fill_bytes = 128 * 1024;
    /// Ranks for each processor of a machine; above 1 they wait for it, see predicted_seconds().
    double ranks_per_core = 1;

    double occupies(double bytes) const noexcept { return per_message + bytes * per_byte; }
    /// The same of a rank that also sends, or receives, as much.
    double occupies_both(double bytes) const noexcept { return per_message + bytes * both_byte; }
    /// From the moment that a message leaves until its receiver begins with it.
    double arrival(double bytes) const noexcept {
        return latency + std::min(bytes, fill_bytes) * per_byte;
    }
    /// One message, from the moment that its sender is ready until its receiver has it.
    double hop(double bytes) const noexcept { return arrival(bytes) + occupies(bytes); }
    /// The same where both ranks send at the same time. Of small messages the one has left before
    /// the other arrives.
    double swap(double bytes) const noexcept {
        return occupies(bytes) > arrival(bytes) ? arrival(bytes) + occupies_both(bytes)
                                                : hop(bytes);
    }
};

}  // namespace nexar::schedule
