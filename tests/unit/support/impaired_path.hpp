#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/udp_fault/impairment.hpp"

namespace nexar::udp_fault {

inline constexpr TimePoint kStart{std::chrono::hours(1)};

/// `size` bytes that depend on position and number; the first four hold the number.
inline std::vector<std::byte> content(std::uint32_t number, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + number);
    std::ranges::copy(std::as_bytes(std::span(&number, 1)).first(std::min(size, sizeof number)),
                      bytes.begin());
    return bytes;
}

inline std::uint32_t number_of(const Datagram& datagram) {
    std::uint32_t number = 0;
    const std::span<const std::byte> bytes(datagram.bytes);
    std::ranges::copy(bytes.first(std::min(bytes.size(), sizeof number)),
                      std::as_writable_bytes(std::span(&number, 1)).begin());
    return number;
}

/// An impairment on virtual time that records its output and the times of arrival.
class Path {
public:
    struct Arrival {
        TimePoint at{};
        Datagram datagram{};
    };

    explicit Path(const FaultOptions& options, std::uint64_t seed = 1,
                  const QueueLimits& limits = {})
        : impairment(options, limits, Random(seed)) {}

    void send(std::uint32_t number, std::size_t size = 1200, std::uint64_t flow = 1) {
        impairment.offer(now, flow, 0, content(number, size));
    }

    /// Advances time, stopping whenever something is due.
    void run(Duration by) {
        const TimePoint end = now + by;
        while (true) {
            while (auto datagram = impairment.poll(now)) arrived.push_back({now, *datagram});
            const auto next = impairment.next_deadline();
            if (!next || *next > end) break;
            EXPECT_GT(*next, now) << "due, but poll() kept it";
            now = *next;
        }
        now = end;
    }

    std::vector<std::uint32_t> numbers() const {
        std::vector<std::uint32_t> all;
        for (const Arrival& arrival : arrived) all.push_back(number_of(arrival.datagram));
        return all;
    }

    void expect_nothing_unaccounted() const {
        const FaultCounters& c = impairment.counters();
        EXPECT_EQ(c.received + c.duplicated, c.delivered + c.queued + c.dropped + c.burst_dropped +
                                                 c.blackholed + c.oversized + c.overflowed);
        EXPECT_EQ(c.delivered, arrived.size());
    }

    TimePoint now = kStart;
    Impairment impairment;
    std::vector<Arrival> arrived;
};

}  // namespace nexar::udp_fault
