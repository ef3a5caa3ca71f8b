#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"

namespace nexar::udp_fault {

/// The two ways through the proxy; each has its own faults, generator and counters.
enum class Direction : std::uint8_t { to_target, to_client };

/// A path's faults in one direction. What is not set does nothing. Sizes are bytes of UDP payload;
/// probabilities are in [0, 1] and drawn for each datagram.
struct FaultOptions {
    /// Independent loss; after `longest_run` losses in a row the next datagram passes (0: no
    /// limit).
    struct Drop {
        double probability = 0;
        std::uint32_t longest_run = 0;
    };
    /// Loss of several in a row: `start` is drawn outside of a burst, its length is uniform.
    struct Burst {
        double start = 0;
        std::uint32_t shortest = 1;
        std::uint32_t longest = 1;
    };
    /// Holds a datagram back until `packets` later ones of its flow have left, but at most for
    /// `at_most` longer than without. 0 packets: always for `at_most`.
    struct Reorder {
        double probability = 0;
        std::uint32_t packets = 3;
        Duration at_most = std::chrono::milliseconds(5);
    };
    /// Flips so many different bits, or all if there are fewer.
    struct Corrupt {
        double probability = 0;
        std::uint32_t bits = 1;
    };
    /// Swallows everything from `after` on, for `lasts`, again and again with the period `every`
    /// (zero: once). Counted from the first datagram that sees these options. Zero `lasts`: never.
    struct Blackhole {
        Duration after{};
        Duration lasts{};
        Duration every{};
    };
    /// A line of so many bytes per second (0: infinitely fast) with a queue before it; what finds
    /// the queue full is lost.
    struct Rate {
        std::uint64_t bytes_per_second = 0;
        std::uint64_t queue_bytes = std::uint64_t{256} << 10U;
    };

    Drop drop{};
    Burst burst{};
    double duplicate = 0;
    Reorder reorder{};
    /// Each datagram takes `delay` plus a uniform part of `jitter`. Neither changes the order: a
    /// datagram that would overtake leaves together with the one before it.
    Duration delay{};
    Duration jitter{};
    Corrupt corrupt{};
    double truncate = 0;  // probability to be cut to a uniform shorter length, 0 included
    Blackhole blackhole{};
    std::size_t largest = 0;  // larger datagrams vanish, as on a path of a smaller MTU; 0: no limit
    Rate rate{};
};

/// Whether the options can be meant; the error names the option, what was given and what is
/// allowed.
Result<void> check(const FaultOptions& options);

/// Whether a blackhole swallows what comes `since` after its origin.
bool swallows(const FaultOptions::Blackhole& blackhole, Duration since) noexcept;

/// What happens to one datagram as far as chance decides it: time (blackhole, rate) has its say
/// later.
struct Fate {
    bool dropped = false;
    bool burst_dropped = false;
    bool duplicated = false;
    bool held_back = false;
    Duration jitter{};
    std::optional<std::size_t> cut_to{};
    std::vector<std::uint32_t> flipped_bits{};  // different ones, after the cut; counted from bit 0
                                                // of byte 0
};

/// Deals out the fates of the datagrams of one direction.
///
/// The n-th fate depends on the seed, the options and n only (and on the datagram's size, where
/// bits are flipped or it is cut; and for burst and run on the fates since the options were set).
/// Each datagram draws from a fork of the direction's generator, and draws for every fault, set or
/// not: so a fault that is switched on does not change what the others do to the same datagrams.
class FateSequence {
public:
    /// The options must pass check().
    FateSequence(const FaultOptions& options, const Random& random);

    /// From the next datagram on. A burst or run in progress ends.
    void set_options(const FaultOptions& options);

    Fate next(std::size_t bytes);

private:
    bool draw_drop(Random& random) noexcept;
    bool draw_burst(Random& random) noexcept;

    FaultOptions options_;
    Random random_;
    std::uint32_t run_ = 0;         // independent losses in a row
    std::uint32_t burst_left_ = 0;  // datagrams that the present burst still takes
};

}  // namespace nexar::udp_fault
