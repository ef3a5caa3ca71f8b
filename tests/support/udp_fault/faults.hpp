#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"

namespace nexar::udp_fault {

/// The two directions through the proxy; each has its own faults, generator and counters.
enum class Direction : std::uint8_t { to_target, to_client };

/// The faults of a path in one direction. By default there are none. Sizes are bytes of UDP
/// payload; probabilities are in [0, 1] and apply to each datagram.
struct FaultOptions {
    /// Independent loss; after `longest_run` consecutive losses the next datagram passes (0: no
    /// limit).
    struct Drop {
        double probability = 0;
        std::uint32_t longest_run = 0;
    };
    /// Consecutive losses: outside of a burst, each datagram starts one with the probability
    /// `start`; its length is uniform.
    struct Burst {
        double start = 0;
        std::uint32_t shortest = 1;
        std::uint32_t longest = 1;
    };
    /// Holds a datagram back until `packets` later ones of its flow have left, but delays it by at
    /// most `at_most`. 0 packets: always by `at_most`.
    struct Reorder {
        double probability = 0;
        std::uint32_t packets = 3;
        Duration at_most = std::chrono::milliseconds(5);
    };
    /// Flips `bits` different bits, or all if there are fewer.
    struct Corrupt {
        double probability = 0;
        std::uint32_t bits = 1;
    };
    /// Drops everything from `after` on, for `lasts`, repeatedly with the period `every` (zero:
    /// once). Time starts with the first datagram under these options. Zero `lasts`: never.
    struct Blackhole {
        Duration after{};
        Duration lasts{};
        Duration every{};
    };
    /// A line with this bandwidth (0: infinitely fast) and a queue before it; datagrams that find
    /// the queue full are lost.
    struct Rate {
        std::uint64_t bytes_per_second = 0;
        std::uint64_t queue_bytes = std::uint64_t{256} << 10U;
    };

    Drop drop{};
    Burst burst{};
    double duplicate = 0;
    Reorder reorder{};
    /// Each datagram takes `delay` plus a uniform random part of `jitter`. Neither changes the
    /// order: a datagram that would overtake leaves together with the one before it.
    Duration delay{};
    Duration jitter{};
    Corrupt corrupt{};
    double truncate = 0;  // probability of truncation to a uniform random length, including 0
    Blackhole blackhole{};
    std::size_t largest = 0;  // larger datagrams are lost, as with a smaller MTU; 0: no limit
    Rate rate{};
};

/// Validates the options; the error names the option, its value and what is allowed.
Result<void> check(const FaultOptions& options);

/// True if the blackhole drops a datagram that arrives `since` after its origin.
bool swallows(const FaultOptions::Blackhole& blackhole, Duration since) noexcept;

/// The random part of what happens to one datagram; effects of time (blackhole, rate) come later.
struct Fate {
    bool dropped = false;
    bool burst_dropped = false;
    bool duplicated = false;
    bool held_back = false;
    Duration jitter{};
    std::optional<std::size_t> cut_to{};
    std::vector<std::uint32_t>
        flipped_bits{};  // distinct, after truncation; counted from bit 0 of byte 0
};

/// Draws the fates of the datagrams of one direction.
///
/// The n-th fate depends only on the seed, the options and n (flipped bits and truncation also on
/// the datagram's size; bursts and runs also on the fates since the options were set). Each
/// datagram draws from a fork of the direction's generator, and draws for every fault, enabled or
/// not: so enabling a fault does not change what the others do to the same datagrams.
class FateSequence {
public:
    /// The options must pass check().
    FateSequence(const FaultOptions& options, const Random& random);

    /// Applies from the next datagram on. A burst or run in progress ends.
    void set_options(const FaultOptions& options);

    Fate next(std::size_t bytes);

private:
    bool draw_drop(Random& random) noexcept;
    bool draw_burst(Random& random) noexcept;

    FaultOptions options_;
    Random random_;
    std::uint32_t run_ = 0;         // consecutive independent losses
    std::uint32_t burst_left_ = 0;  // datagrams that the current burst still drops
};

}  // namespace nexar::udp_fault
