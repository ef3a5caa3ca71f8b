#include "support/udp_fault/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/seed.hpp"

namespace nexar::udp_fault {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::size_t kBytes = 1200;

std::vector<Fate> fates(const FaultOptions& options, std::uint64_t seed, std::size_t count) {
    FateSequence sequence(options, Random(seed));
    std::vector<Fate> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(sequence.next(kBytes));
    return all;
}

/// "1" where the condition holds, else ".", so that two runs can be compared at a glance.
template <class Holds>
std::string pattern(const std::vector<Fate>& fates, Holds holds) {
    std::string text;
    for (const Fate& fate : fates) text += holds(fate) ? '1' : '.';
    return text;
}

std::string drops(const std::vector<Fate>& fates) {
    return pattern(fates, [](const Fate& fate) { return fate.dropped; });
}

/// Lengths of the runs of '1' that end within the pattern.
std::vector<std::size_t> runs(const std::string& pattern) {
    std::vector<std::size_t> lengths;
    for (std::size_t at = pattern.find('1'); at != std::string::npos; at = pattern.find('1', at)) {
        const std::size_t end = pattern.find('.', at);
        if (end == std::string::npos) break;
        lengths.push_back(end - at);
        at = end;
    }
    return lengths;
}

/// Six standard deviations of a binomial count: one false alarm in 10^8 runs.
void expect_rate(std::size_t count, double probability, std::size_t draws) {
    const double expected = probability * static_cast<double>(draws);
    EXPECT_NEAR(static_cast<double>(count), expected, 6 * std::sqrt(expected * (1 - probability)));
}

TEST(FateSequence, nothing_happens_without_options) {
    for (const Fate& fate : fates({}, test_seed(1), 1000)) {
        EXPECT_FALSE(fate.dropped || fate.burst_dropped || fate.duplicated || fate.held_back);
        EXPECT_EQ(fate.jitter, Duration::zero());
        EXPECT_FALSE(fate.cut_to.has_value());
        EXPECT_TRUE(fate.flipped_bits.empty());
    }
}

// Recorded once: a change here breaks the replay of every seed that was ever printed.
TEST(FateSequence, a_seed_always_gives_the_same_fates) {
    FaultOptions options;
    options.drop.probability = 0.3;
    options.burst = {.start = 0.1, .shortest = 2, .longest = 4};
    options.duplicate = 0.2;
    options.reorder.probability = 0.25;
    options.truncate = 0.5;
    options.corrupt = {.probability = 0.5, .bits = 2};
    options.jitter = 1ms;
    const auto seen = fates(options, 42, 24);
    EXPECT_EQ(drops(seen), "....11...11..1..1.1.1..1");
    EXPECT_EQ(pattern(seen, [](const Fate& fate) { return fate.burst_dropped; }),
              "....................111.");
    EXPECT_EQ(pattern(seen, [](const Fate& fate) { return fate.duplicated; }),
              "................1...1...");
    EXPECT_EQ(pattern(seen, [](const Fate& fate) { return fate.held_back; }),
              "1.11.........111...1.1..");
    EXPECT_EQ(pattern(seen, [](const Fate& fate) { return fate.cut_to.has_value(); }),
              "11111.11111.1.1.1.111..1");
    EXPECT_EQ(pattern(seen, [](const Fate& fate) { return !fate.flipped_bits.empty(); }),
              ".1...11....1...1.1....1.");
    EXPECT_EQ(seen[0].jitter, 768064ns);
    EXPECT_EQ(seen[1].jitter, 189332ns);
}

TEST(FateSequence, another_seed_gives_other_fates) {
    FaultOptions options;
    options.drop.probability = 0.5;
    const std::uint64_t seed = test_seed(2);
    EXPECT_EQ(drops(fates(options, seed, 200)), drops(fates(options, seed, 200)));
    EXPECT_NE(drops(fates(options, seed, 200)), drops(fates(options, seed + 1, 200)));
}

TEST(FateSequence, enabling_a_fault_does_not_change_the_others) {
    const std::uint64_t seed = test_seed(3);
    FaultOptions options;
    options.drop.probability = 0.3;
    options.jitter = 10ms;
    const auto before = fates(options, seed, 500);
    options.burst = {.start = 0.1, .shortest = 1, .longest = 5};
    options.duplicate = 0.5;
    options.reorder.probability = 0.5;
    options.truncate = 0.5;
    options.corrupt = {.probability = 1, .bits = 64};
    const auto after = fates(options, seed, 500);
    EXPECT_EQ(drops(before), drops(after));
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].jitter, after[i].jitter);
}

TEST(FateSequence, the_size_of_a_datagram_does_not_affect_later_fates) {
    FaultOptions options;
    options.drop.probability = 0.5;
    options.truncate = 0.5;
    options.corrupt = {.probability = 0.5, .bits = 20};
    const std::uint64_t seed = test_seed(4);
    FateSequence small(options, Random(seed));
    FateSequence large(options, Random(seed));
    for (std::size_t i = 0; i < 300; ++i) {
        EXPECT_EQ(small.next(i % 4).dropped, large.next(60000 + i).dropped);
    }
}

TEST(FateSequence, each_fault_has_the_given_probability) {
    FaultOptions options;
    options.drop.probability = 0.02;
    options.duplicate = 0.1;
    options.reorder.probability = 0.3;
    options.truncate = 0.05;
    options.corrupt.probability = 0.5;
    constexpr std::size_t kDraws = 50000;
    const auto seen = fates(options, test_seed(5), kDraws);
    const auto count = [&seen](auto holds) {
        return static_cast<std::size_t>(std::ranges::count_if(seen, holds));
    };
    expect_rate(count([](const Fate& fate) { return fate.dropped; }), 0.02, kDraws);
    expect_rate(count([](const Fate& fate) { return fate.duplicated; }), 0.1, kDraws);
    expect_rate(count([](const Fate& fate) { return fate.held_back; }), 0.3, kDraws);
    expect_rate(count([](const Fate& fate) { return fate.cut_to.has_value(); }), 0.05, kDraws);
    // A datagram truncated to nothing has no bits; that is one in 1200 of the truncated ones.
    expect_rate(count([](const Fate& fate) { return !fate.flipped_bits.empty(); }), 0.5, kDraws);
    expect_rate(count([](const Fate& fate) { return fate.dropped && fate.duplicated; }), 0.002,
                kDraws);
}

TEST(FateSequence, the_limit_on_consecutive_losses_holds_and_is_reached) {
    FaultOptions options;
    options.drop = {.probability = 0.3, .longest_run = 3};
    constexpr std::size_t kDraws = 20000;
    const std::string seen = drops(fates(options, test_seed(6), kDraws));
    EXPECT_EQ(std::ranges::max(runs(seen)), 3U);
    // A run of n losses has the probability 0.7 * 0.3^n for n < 3 and 0.3^3 for n = 3, after which
    // the next datagram cannot be lost: 0.417 losses in 1.417 datagrams.
    expect_rate(static_cast<std::size_t>(std::ranges::count(seen, '1')), 0.417 / 1.417, kDraws);
    options.drop.longest_run = 0;
    EXPECT_GT(std::ranges::max(runs(drops(fates(options, test_seed(6), kDraws)))), 3U);
}

TEST(FateSequence, bursts_have_exactly_the_lengths_in_the_range) {
    FaultOptions options;
    options.burst = {.start = 0.01, .shortest = 2, .longest = 4};
    constexpr std::size_t kDraws = 100000;
    const auto lengths = runs(pattern(fates(options, test_seed(7), kDraws),
                                      [](const Fate& fate) { return fate.burst_dropped; }));
    std::array<std::size_t, 5> seen{};
    std::size_t alone = 0;
    for (const std::size_t length : lengths) {
        EXPECT_GE(length, 2U);
        // A longer one is two adjacent bursts.
        if (length > 4) continue;
        ++seen.at(length);
        ++alone;
    }
    for (const std::size_t length : {2U, 3U, 4U}) {
        // Two adjacent bursts of 2 look like one of 4: about 3 of 1000 bursts.
        EXPECT_NEAR(static_cast<double>(seen[length]), static_cast<double>(alone) / 3,
                    6 * std::sqrt(static_cast<double>(alone) * 2 / 9) + 12);
    }
    // One burst starts per 100 datagrams outside of bursts and loses 3 on average: 3 in 103.
    expect_rate(lengths.size(), 1.0 / 103, kDraws);
}

TEST(FateSequence, new_options_end_a_burst) {
    FaultOptions options;
    options.burst = {.start = 1, .shortest = 1000, .longest = 1000};
    FateSequence sequence(options, Random(test_seed(8)));
    EXPECT_TRUE(sequence.next(kBytes).burst_dropped);
    sequence.set_options({});
    EXPECT_FALSE(sequence.next(kBytes).burst_dropped);
}

TEST(FateSequence, jitter_fills_its_range) {
    FaultOptions options;
    options.jitter = 1ms;
    Duration sum{};
    Duration most{};
    constexpr std::size_t kDraws = 10000;
    for (const Fate& fate : fates(options, test_seed(9), kDraws)) {
        ASSERT_GE(fate.jitter, 0ns);
        ASSERT_LT(fate.jitter, 1ms);
        most = std::max(most, fate.jitter);
        sum += fate.jitter;
    }
    EXPECT_GT(most, 990us);
    // Six standard deviations of the mean: 289 us / sqrt(10000) each.
    EXPECT_NEAR(static_cast<double>(sum.count()) / kDraws, 500e3, 6 * 2.9e3);
}

TEST(FateSequence, flips_different_bits_within_the_truncated_datagram) {
    FaultOptions options;
    options.truncate = 0.5;
    options.corrupt = {.probability = 1, .bits = 5};
    FateSequence sequence(options, Random(test_seed(10)));
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t bytes = i % 8;
        const Fate fate = sequence.next(bytes);
        const std::size_t left = fate.cut_to.value_or(bytes);
        EXPECT_LE(left, fate.cut_to ? bytes - 1 : bytes);
        EXPECT_EQ(fate.flipped_bits.size(), std::min<std::size_t>(5, left * 8));
        const std::set<std::uint32_t> bits(fate.flipped_bits.begin(), fate.flipped_bits.end());
        EXPECT_EQ(bits.size(), fate.flipped_bits.size());
        for (const std::uint32_t bit : bits) EXPECT_LT(bit, left * 8);
        seen.insert(bits.begin(), bits.end());
    }
    EXPECT_EQ(seen.size(), 7U * 8);
}

TEST(Blackhole, drops_only_within_its_windows) {
    const FaultOptions::Blackhole periodic{.after = 5s, .lasts = 2s, .every = 7s};
    for (const auto& [since, expected] : {std::pair<Duration, bool>{0s, false},
                                          {5s - 1ns, false},
                                          {5s, true},
                                          {7s - 1ns, true},
                                          {7s, false},
                                          {12s - 1ns, false},
                                          {12s, true},
                                          {14s, false},
                                          {705s, true}}) {
        EXPECT_EQ(swallows(periodic, since), expected) << since.count();
    }
    const FaultOptions::Blackhole once{.after = 1s, .lasts = 1s, .every = 0s};
    EXPECT_TRUE(swallows(once, 1500ms));
    EXPECT_FALSE(swallows(once, 2s));
    EXPECT_FALSE(swallows(once, 3500ms));
    EXPECT_FALSE(swallows({}, 0s));
}

template <class Change>
std::string refusal(Change change) {
    FaultOptions options;
    change(options);
    const auto valid = check(options);
    return valid ? "accepted" : valid.error().cause();
}

TEST(Check, error_names_the_option_and_what_is_allowed) {
    EXPECT_EQ(refusal([](FaultOptions&) {}), "accepted");
    EXPECT_EQ(refusal([](FaultOptions& o) { o.drop.probability = 1.5; }),
              "drop.probability is 1.5; allowed: a probability from 0 to 1");
    EXPECT_THAT(refusal([](FaultOptions& o) { o.duplicate = std::nan(""); }),
                HasSubstr("duplicate is nan; allowed"));
    EXPECT_THAT(refusal([](FaultOptions& o) { o.truncate = -0.1; }), HasSubstr("truncate is -0.1"));
    EXPECT_THAT(refusal([](FaultOptions& o) { o.delay = -1ns; }),
                HasSubstr("delay is -1 ns; allowed: a time from 0 to 24 h"));
    EXPECT_THAT(refusal([](FaultOptions& o) { o.jitter = 25h; }), HasSubstr("jitter is"));
    EXPECT_EQ(refusal([](FaultOptions& o) { o.burst.shortest = 2; }),
              "burst.shortest is 2; allowed: a number from 1 to 1");
    EXPECT_THAT(refusal([](FaultOptions& o) { o.burst.longest = 0; }), HasSubstr("burst.longest"));
    EXPECT_THAT(refusal([](FaultOptions& o) { o.reorder.packets = 65; }),
                HasSubstr("reorder.packets is 65; allowed: a number from 0 to 64"));
    EXPECT_THAT(refusal([](FaultOptions& o) { o.corrupt.bits = 0; }), HasSubstr("corrupt.bits"));
    EXPECT_EQ(
        refusal([](FaultOptions& o) { o.blackhole = {.after = 0s, .lasts = 2s, .every = 2s}; }),
        "blackhole.every is 2s; allowed: 0 (once), or a period longer than "
        "blackhole.lasts, 2s");
    EXPECT_THAT(refusal([](FaultOptions& o) { o.rate.queue_bytes = std::uint64_t{1} << 31U; }),
                HasSubstr("rate.queue_bytes"));
}

TEST(FateSequenceDeathTest, requires_checked_options) {
    FaultOptions options;
    options.drop.probability = 2;
    EXPECT_DEATH(FateSequence(options, Random(1)), "the caller checks the options");
}

}  // namespace
}  // namespace nexar::udp_fault
