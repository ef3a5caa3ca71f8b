#include "support/udp_fault/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/assert.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"

namespace nexar::udp_fault {

namespace {

constexpr Duration kLongest = std::chrono::hours(24);
constexpr std::uint32_t kMostInARow = 1'000'000;
constexpr std::uint32_t kMostHeldFor = 64;
constexpr std::uint32_t kMostBits = 64;
// With these limits, bytes times nanoseconds per second fit in 63 bits.
constexpr std::uint64_t kLargestQueue = std::uint64_t{1} << 30U;
constexpr std::uint64_t kFastestLine = 1'000'000'000'000;

Error refused(std::string_view option, std::string_view given, std::string_view allowed) {
    return {Errc::invalid_argument, fmt::format("{} is {}; allowed: {}", option, given, allowed)};
}

Result<void> check_probability(std::string_view option, double given) {
    if (given >= 0 && given <= 1) return {};
    return refused(option, fmt::format("{}", given), "a probability from 0 to 1");
}

Result<void> check_duration(std::string_view option, Duration given) {
    if (given >= Duration::zero() && given <= kLongest) return {};
    return refused(option, fmt::format("{} ns", given.count()), "a time from 0 to 24 h");
}

Result<void> check_number(std::string_view option, std::uint64_t given, std::uint64_t least,
                          std::uint64_t most) {
    if (given >= least && given <= most) return {};
    return refused(option, fmt::format("{}", given),
                   fmt::format("a number from {} to {}", least, most));
}

Result<void> check_blackhole(const FaultOptions::Blackhole& blackhole) {
    NEXAR_TRY(check_duration("blackhole.after", blackhole.after));
    NEXAR_TRY(check_duration("blackhole.lasts", blackhole.lasts));
    NEXAR_TRY(check_duration("blackhole.every", blackhole.every));
    if (blackhole.every == Duration::zero() || blackhole.every > blackhole.lasts) return {};
    return refused("blackhole.every", format_duration(blackhole.every),
                   fmt::format("0 (once), or a period longer than blackhole.lasts, {}",
                               format_duration(blackhole.lasts)));
}

/// Distinct bits of a datagram, in the order drawn.
std::vector<std::uint32_t> draw_bits(Random& random, std::size_t bytes, std::uint32_t count) {
    const auto all = static_cast<std::uint32_t>(bytes * 8);
    std::vector<std::uint32_t> bits;
    while (bits.size() < std::min(count, all)) {
        const auto bit = static_cast<std::uint32_t>(random.below(all));
        if (std::ranges::find(bits, bit) == bits.end()) bits.push_back(bit);
    }
    return bits;
}

}  // namespace

Result<void> check(const FaultOptions& options) {
    NEXAR_TRY(check_probability("drop.probability", options.drop.probability));
    NEXAR_TRY(check_number("drop.longest_run", options.drop.longest_run, 0, kMostInARow));
    NEXAR_TRY(check_probability("burst.start", options.burst.start));
    NEXAR_TRY(check_number("burst.longest", options.burst.longest, 1, kMostInARow));
    NEXAR_TRY(check_number("burst.shortest", options.burst.shortest, 1, options.burst.longest));
    NEXAR_TRY(check_probability("duplicate", options.duplicate));
    NEXAR_TRY(check_probability("reorder.probability", options.reorder.probability));
    NEXAR_TRY(check_number("reorder.packets", options.reorder.packets, 0, kMostHeldFor));
    NEXAR_TRY(check_duration("reorder.at_most", options.reorder.at_most));
    NEXAR_TRY(check_duration("delay", options.delay));
    NEXAR_TRY(check_duration("jitter", options.jitter));
    NEXAR_TRY(check_probability("corrupt.probability", options.corrupt.probability));
    NEXAR_TRY(check_number("corrupt.bits", options.corrupt.bits, 1, kMostBits));
    NEXAR_TRY(check_probability("truncate", options.truncate));
    NEXAR_TRY(check_blackhole(options.blackhole));
    NEXAR_TRY(
        check_number("rate.bytes_per_second", options.rate.bytes_per_second, 0, kFastestLine));
    return check_number("rate.queue_bytes", options.rate.queue_bytes, 0, kLargestQueue);
}

bool swallows(const FaultOptions::Blackhole& blackhole, Duration since) noexcept {
    if (since < blackhole.after) return false;
    Duration inside = since - blackhole.after;
    if (blackhole.every > Duration::zero()) inside %= blackhole.every;
    return inside < blackhole.lasts;
}

FateSequence::FateSequence(const FaultOptions& options, const Random& random)
    : options_(options), random_(random) {
    NEXAR_ASSERT(check(options).has_value(), "the caller checks the options");
}

void FateSequence::set_options(const FaultOptions& options) {
    NEXAR_ASSERT(check(options).has_value(), "the caller checks the options");
    options_ = options;
    run_ = 0;
    burst_left_ = 0;
}

Fate FateSequence::next(std::size_t bytes) {
    Random random = random_.fork();
    Fate fate;
    fate.dropped = draw_drop(random);
    fate.burst_dropped = draw_burst(random);
    fate.duplicated = random.chance(options_.duplicate);
    fate.held_back = random.chance(options_.reorder.probability);
    fate.jitter = Duration(static_cast<Duration::rep>(
        random.uniform() * static_cast<double>(options_.jitter.count())));
    const bool truncated = random.chance(options_.truncate);
    const double kept = random.uniform();
    const bool corrupted = random.chance(options_.corrupt.probability);
    // These come last, because their number of draws depends on the datagram.
    if (truncated && bytes > 0) {
        fate.cut_to = static_cast<std::size_t>(kept * static_cast<double>(bytes));
    }
    if (corrupted) {
        fate.flipped_bits = draw_bits(random, fate.cut_to.value_or(bytes), options_.corrupt.bits);
    }
    return fate;
}

bool FateSequence::draw_drop(Random& random) noexcept {
    const bool drawn = random.chance(options_.drop.probability);
    const bool spared = options_.drop.longest_run > 0 && run_ >= options_.drop.longest_run;
    run_ = drawn && !spared ? run_ + 1 : 0;
    return drawn && !spared;
}

bool FateSequence::draw_burst(Random& random) noexcept {
    const bool starts = random.chance(options_.burst.start);
    const double length = random.uniform();
    if (burst_left_ == 0 && starts) {
        const std::uint32_t lengths = options_.burst.longest - options_.burst.shortest + 1;
        burst_left_ = options_.burst.shortest + static_cast<std::uint32_t>(length * lengths);
    }
    if (burst_left_ == 0) return false;
    --burst_left_;
    return true;
}

}  // namespace nexar::udp_fault
