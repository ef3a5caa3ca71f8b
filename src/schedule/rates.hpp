#pragma once

#include <algorithm>

#include "schedule/stretch.hpp"

namespace nexar::schedule {

/// The costs of a fabric, in seconds: the LogGP model (Alexandrov et al., 1995) with two more
/// terms, for links whose packets the processors of the ranks build and parse. A message of b bytes
/// occupies its sender, and then its receiver, for `per_message + b * per_byte` each, and its first
/// byte arrives `latency` after it was sent. Sender and receiver handle the first `fill_bytes` one
/// after the other, and the rest concurrently. A rank that sends and receives at the same time
/// needs `both_byte` for a byte in each direction. The defaults are about what two processes on one
/// host achieve over QUIC (bench/choice.sh --ranks 2).
struct Rates {
    double latency = 10e-6;          // alpha
    double per_message = 3e-6;       // of one more message, for a rank that handles several
    double per_byte = 1.0 / 1.3e9;   // beta
    double both_byte = 1.0 / 0.7e9;  // at least per_byte
    double reduce_byte = 1.0 / 8e9;  // gamma
    double copy_byte = 1.0 / 12e9;
    double fill_bytes = 128 * 1024;
    /// Ranks per processor of a host; above 1 they take turns, see predicted_seconds().
    double ranks_per_core = 1;
    /// Of all ranks of a host together, in each direction, between hosts; 0: every rank can reach
    /// per_byte at the same time.
    double shared_byte = 0;

    /// The rates of a rank while this many ranks of its host use the network at the same time.
    Rates shared_by(double ranks) const noexcept {
        Rates rates = *this;
        rates.per_byte = std::max(per_byte, ranks * shared_byte);
        rates.both_byte = std::max(both_byte, ranks * shared_byte);
        // The receiver of a long message begins as early as before.
        rates.fill_bytes *= per_byte / rates.per_byte;
        return rates;
    }

    /// The rates of messages over several hops in a sparse topology. A relay handles a message like
    /// a rank that receives and sends it at the same time, but passes the first bytes on at once.
    Rates over(const Stretch& stretch) const noexcept {
        Rates rates = *this;
        rates.latency = stretch.path * latency + (stretch.path - 1) * per_message;
        rates.per_message = stretch.load > 1 ? stretch.mean * per_message : per_message;
        rates.both_byte = stretch.load * both_byte;
        const double relayed = std::min(stretch.mean - 1, 1.0);
        rates.per_byte = per_byte + relayed * (rates.both_byte - per_byte);
        rates.fill_bytes *= per_byte / rates.per_byte;
        return rates;
    }

    double occupies(double bytes) const noexcept { return per_message + bytes * per_byte; }
    /// The same for a rank that sends and receives this much at the same time.
    double occupies_both(double bytes) const noexcept { return per_message + bytes * both_byte; }
    /// From the moment at which a message is sent until its receiver begins to handle it.
    double arrival(double bytes) const noexcept {
        return latency + std::min(bytes, fill_bytes) * per_byte;
    }
    /// One message, from the moment at which its sender is ready until its receiver has all of it.
    double hop(double bytes) const noexcept { return arrival(bytes) + occupies(bytes); }
    /// The same when both ranks send at the same time. A small message has left before the other
    /// one arrives.
    double swap(double bytes) const noexcept {
        return occupies(bytes) > arrival(bytes) ? arrival(bytes) + occupies_both(bytes)
                                                : hop(bytes);
    }
};

/// About what a pair of processes achieves through the shared memory of a host: two copies, through
/// a ring (nexar bench latency -n 2 --link shm, and bandwidth).
inline constexpr Rates kSharedMemoryRates{.latency = 1e-6,
                                          .per_message = 0.4e-6,
                                          .per_byte = 1.0 / 9e9,
                                          .both_byte = 1.0 / 6e9,
                                          .fill_bytes = 64 * 1024};

}  // namespace nexar::schedule
