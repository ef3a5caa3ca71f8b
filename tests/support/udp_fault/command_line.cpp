#include "support/udp_fault/command_line.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

#include "base/printable.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"

namespace nexar::udp_fault {

namespace {

template <class T>
Result<void> assign(T& field, const Result<T>& parsed) {
    NEXAR_TRY_VALUE(value, parsed);
    field = value;
    return {};
}

Result<void> set(double& field, std::string_view text) {
    return assign(field, parse_real(text));
}

Result<void> set(Duration& field, std::string_view text) {
    return assign(field, parse_duration(text));
}

// 64-bit fields are sizes, which may have a unit.
Result<void> set(std::uint64_t& field, std::string_view text) {
    return assign(field, parse_size(text));
}

Result<void> set(std::uint32_t& field, std::string_view text) {
    NEXAR_TRY_VALUE(number, parse_integer(text));
    if (number < 0 || number > std::numeric_limits<std::uint32_t>::max()) {
        return Error(Errc::invalid_argument,
                     fmt::format("{} is not a number from 0 to 4294967295", in_quotes(text)));
    }
    field = static_cast<std::uint32_t>(number);
    return {};
}

constexpr std::array<FaultFlag, 20> kFlags = {{
    {"drop", "P", "lose each datagram with this probability",
     [](auto& o, auto text) { return set(o.drop.probability, text); }},
    {"drop-run", "N", "but never more than N of them in a row (0: no limit)",
     [](auto& o, auto text) { return set(o.drop.longest_run, text); }},
    {"burst", "P", "start a burst of losses at a datagram with this probability",
     [](auto& o, auto text) { return set(o.burst.start, text); }},
    {"burst-min", "N", "datagrams in the shortest burst (1)",
     [](auto& o, auto text) { return set(o.burst.shortest, text); }},
    {"burst-max", "N", "datagrams in the longest burst (1)",
     [](auto& o, auto text) { return set(o.burst.longest, text); }},
    {"duplicate", "P", "deliver a datagram twice with this probability",
     [](auto& o, auto text) { return set(o.duplicate, text); }},
    {"reorder", "P", "hold a datagram back with this probability",
     [](auto& o, auto text) { return set(o.reorder.probability, text); }},
    {"reorder-packets", "N",
     "until N later ones of the same client have left (3; 0: for the whole time)",
     [](auto& o, auto text) { return set(o.reorder.packets, text); }},
    {"reorder-time", "TIME", "but no longer than this (5ms)",
     [](auto& o, auto text) { return set(o.reorder.at_most, text); }},
    {"delay", "TIME", "delay every datagram by this time",
     [](auto& o, auto text) { return set(o.delay, text); }},
    {"jitter", "TIME", "plus a uniform random part of this time, without reordering",
     [](auto& o, auto text) { return set(o.jitter, text); }},
    {"corrupt", "P", "flip bits of a datagram with this probability",
     [](auto& o, auto text) { return set(o.corrupt.probability, text); }},
    {"corrupt-bits", "N", "number of bits to flip (1)",
     [](auto& o, auto text) { return set(o.corrupt.bits, text); }},
    {"truncate", "P", "truncate a datagram with this probability",
     [](auto& o, auto text) { return set(o.truncate, text); }},
    {"blackhole-after", "TIME", "start a blackhole this long after the first datagram",
     [](auto& o, auto text) { return set(o.blackhole.after, text); }},
    {"blackhole-lasts", "TIME", "drop everything for this long (0s: no blackhole)",
     [](auto& o, auto text) { return set(o.blackhole.lasts, text); }},
    {"blackhole-every", "TIME", "start it again with this period (0s: only once)",
     [](auto& o, auto text) { return set(o.blackhole.every, text); }},
    {"largest", "SIZE", "lose datagrams with a larger payload than this (0: no limit)",
     [](auto& o, auto text) { return set(o.largest, text); }},
    {"rate", "SIZE", "bandwidth of the line in bytes per second (0: unlimited)",
     [](auto& o, auto text) { return set(o.rate.bytes_per_second, text); }},
    {"rate-queue", "SIZE", "bytes that may queue for the line; the excess is lost (256KiB)",
     [](auto& o, auto text) { return set(o.rate.queue_bytes, text); }},
}};

}  // namespace

std::span<const FaultFlag> fault_flags() noexcept {
    return kFlags;
}

}  // namespace nexar::udp_fault
