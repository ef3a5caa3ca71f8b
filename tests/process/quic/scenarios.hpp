#pragma once

#include <cstdint>

#include "process/quic/wire.hpp"

/// Scenarios that the suite runs in a short form and the soak tests at full length. Each fails the
/// current test if something is wrong.
namespace nexar::testing {

/// The network is down for `lasts` out of every `every`, `holes` times, from the middle of a
/// transfer on; the transfer continues.
struct BlackholeCase {
    Duration lasts{};
    Duration every{};
    std::uint64_t bytes = 0;
    std::size_t holes = 1;
    std::uint64_t seed = 1;
};
void survives_blackholes(const BlackholeCase& scenario);

/// A NAT forgets its bindings while data flows both ways; the server follows.
struct RebindCase {
    Duration after{};      // until the first change; zero: only `every`
    Duration every{};      // zero: once
    bool address = false;  // changes the address as well as the port
    Duration length{};
    std::size_t least_changes = 1;
    std::uint64_t seed = 1;
};
void survives_rebinding(const RebindCase& scenario);

/// Streams in both directions at once over a clean network.
struct VolumeCase {
    std::size_t streams = 64;
    std::uint64_t bytes_each_way = 0;
    std::size_t datagram_bytes = 1452;
};
void moves_both_ways_without_stall(const VolumeCase& scenario);

/// Referenced memory is overwritten as soon as it is released, and reused, while packets are lost.
struct PoisonCase {
    std::uint64_t bytes_each_way = 0;
    std::uint64_t seed = 1;
};
void never_reads_released_memory(const PoisonCase& scenario);

/// Strangers send Initials from spoofed addresses, `per_second` or as many as one core can.
struct FloodCase {
    Duration length{};
    double per_second = kSanitized ? 10'000 : 200'000;
    std::size_t handshakes = 5;  // of honest clients, spread over the duration
    std::uint64_t seed = 1;
};
void withstands_a_flood_of_initials(const FloodCase& scenario);

}  // namespace nexar::testing
