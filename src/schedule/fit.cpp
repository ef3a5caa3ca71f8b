#include "schedule/fit.hpp"

#include <algorithm>

namespace nexar::schedule {

namespace {

// Faster than any fabric and any memory.
constexpr double kFastestByte = 1e-15;

/// Seconds per additional byte; the average per byte if the larger message was not slower.
double slope(double medium, double large) noexcept {
    constexpr auto kMore = static_cast<double>(LinkTimes::kLarge - LinkTimes::kMedium);
    const double more =
        large > medium ? (large - medium) / kMore : large / static_cast<double>(LinkTimes::kLarge);
    return std::max(more, kFastestByte);
}

}  // namespace

Rates fitted(const LinkTimes& times) noexcept {
    constexpr auto kMedium = static_cast<double>(LinkTimes::kMedium);
    Rates rates;
    rates.per_message = std::clamp(times.one_of_many, 0.0, std::max(times.small, 0.0));
    rates.latency = std::max(times.small - rates.per_message, 1e-9);
    rates.per_byte = slope(times.medium, times.large);
    rates.both_byte = std::max(slope(times.both_medium, times.both_large), rates.per_byte);
    rates.reduce_byte = std::max(times.reduce_byte, kFastestByte);
    rates.copy_byte = std::max(times.copy_byte, kFastestByte);
    // Time beyond the pace of the sender is time in which the receiver had to wait.
    rates.fill_bytes =
        std::clamp((times.medium - times.small) / rates.per_byte - kMedium, 0.0, kMedium);
    return rates;
}

Memory fitted_memory(const MemoryTimes& times) noexcept {
    Memory memory;
    const double pair = std::max(times.pair_barrier, 2e-9);
    if (times.ranks > 2) {
        memory.per_peer = (times.barrier - pair) / (times.ranks - 2);
    }
    memory.per_peer = std::clamp(memory.per_peer, 0.0, pair / 2);
    memory.latency = pair - memory.per_peer;
    // A broadcast puts every byte once, and the others read it.
    memory.put_byte = std::max(times.copy_byte, kFastestByte);
    memory.read_byte = std::max(slope(times.medium, times.large) - memory.put_byte, kFastestByte);
    return memory;
}

double shared_bandwidth(std::uint32_t ranks, double alone, double together) noexcept {
    constexpr double kNoLimit = 0.9;
    return together < kNoLimit * ranks * alone ? together : 0;
}

}  // namespace nexar::schedule
