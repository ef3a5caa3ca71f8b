#pragma once

namespace nexar::schedule {

/// What a fabric costs, in seconds: the LogGP model (Alexandrov et al., 1995) with one rate for
/// both directions of a rank. A message of b bytes occupies its sender and then its receiver for
/// `per_message + b * per_byte` each, and its first byte arrives `latency` after it left. As they
/// are, about what two processes on one machine have over QUIC (p2p_bench, reduce_bench).
struct Rates {
    double latency = 8e-6;           // alpha
    double per_message = 2e-6;       // what one more message costs a rank that is busy with others
    double per_byte = 1.0 / 1.4e9;   // beta
    double reduce_byte = 1.0 / 8e9;  // gamma
    double copy_byte = 1.0 / 12e9;

    /// One message, from the moment that its sender is ready until its receiver has it.
    double hop(double bytes) const noexcept { return latency + occupies(bytes); }
    double occupies(double bytes) const noexcept { return per_message + bytes * per_byte; }
};

}  // namespace nexar::schedule
