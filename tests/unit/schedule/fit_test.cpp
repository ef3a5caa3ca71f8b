#include "schedule/fit.hpp"

#include <gtest/gtest.h>

namespace nexar::schedule {
namespace {

/// The times that a fabric with exactly these rates would show.
LinkTimes times_of(const Rates& rates) {
    const auto medium = static_cast<double>(LinkTimes::kMedium);
    const auto large = static_cast<double>(LinkTimes::kLarge);
    return {.small = rates.hop(0),
            .one_of_many = rates.occupies(0),
            .medium = rates.hop(medium),
            .large = rates.hop(large),
            .both_medium = rates.swap(medium),
            .both_large = rates.swap(large),
            .reduce_byte = rates.reduce_byte,
            .copy_byte = rates.copy_byte};
}

void expect_near(const Rates& found, const Rates& wanted) {
    EXPECT_NEAR(found.latency, wanted.latency, 1e-6 * wanted.latency);
    EXPECT_NEAR(found.per_message, wanted.per_message, 1e-6 * wanted.per_message);
    EXPECT_NEAR(found.per_byte, wanted.per_byte, 1e-6 * wanted.per_byte);
    EXPECT_NEAR(found.both_byte, wanted.both_byte, 1e-6 * wanted.both_byte);
    EXPECT_NEAR(found.reduce_byte, wanted.reduce_byte, 1e-6 * wanted.reduce_byte);
    EXPECT_NEAR(found.copy_byte, wanted.copy_byte, 1e-6 * wanted.copy_byte);
    EXPECT_NEAR(found.fill_bytes, wanted.fill_bytes, 1.0);
}

TEST(Fit, recovers_the_rates_from_exact_times) {
    expect_near(fitted(times_of(Rates{})), Rates{});
    const Rates far{.latency = 1e-3,
                    .per_message = 2e-6,
                    .per_byte = 1 / 12.5e9,
                    .both_byte = 1 / 12.5e9,
                    .reduce_byte = 1 / 20e9,
                    .copy_byte = 1 / 30e9,
                    .fill_bytes = 0};
    expect_near(fitted(times_of(far)), far);
}

TEST(Fit, returns_usable_rates_for_contradictory_times) {
    LinkTimes times = times_of(Rates{});
    times.one_of_many = 2 * times.small;   // slower than a single message
    times.large = times.medium / 2;        // faster with more bytes
    times.both_large = times.both_medium;  // as if bytes took no time
    times.reduce_byte = 0;
    const Rates rates = fitted(times);
    EXPECT_GE(rates.latency, 1e-9);
    EXPECT_EQ(rates.per_message, times.small);
    EXPECT_EQ(rates.per_byte, times.large / LinkTimes::kLarge);
    EXPECT_GE(rates.both_byte, rates.per_byte);
    EXPECT_GT(rates.reduce_byte, 0);
    EXPECT_GE(rates.fill_bytes, 0);
    EXPECT_LE(rates.fill_bytes, LinkTimes::kMedium);

    const Rates nothing = fitted({});
    EXPECT_GT(nothing.latency, 0);
    EXPECT_GT(nothing.per_byte, 0);
    EXPECT_GE(nothing.both_byte, nothing.per_byte);
    EXPECT_GT(nothing.copy_byte, 0);
}

TEST(Fit, recovers_the_costs_of_shared_memory_from_exact_times) {
    const Memory memory{.latency = 1e-6, .per_peer = 50e-9, .put_byte = 1e-10, .read_byte = 3e-10};
    const auto moved = [&](std::uint64_t bytes) {
        return 5e-6 + static_cast<double>(bytes) * (memory.put_byte + memory.read_byte);
    };
    MemoryTimes times{.ranks = 6,
                      .pair_barrier = memory.latency + memory.per_peer,
                      .barrier = memory.latency + 5 * memory.per_peer,
                      .medium = moved(LinkTimes::kMedium),
                      .large = moved(LinkTimes::kLarge),
                      .copy_byte = memory.put_byte};
    const Memory found = fitted_memory(times);
    EXPECT_NEAR(found.latency, memory.latency, 1e-12);
    EXPECT_NEAR(found.per_peer, memory.per_peer, 1e-12);
    EXPECT_NEAR(found.put_byte, memory.put_byte, 1e-15);
    EXPECT_NEAR(found.read_byte, memory.read_byte, 1e-15);
    EXPECT_FALSE(found.shared());

    // Two ranks do not tell what a further one costs, and noise must not give negative costs.
    times.ranks = 2;
    EXPECT_NEAR(fitted_memory(times).latency + fitted_memory(times).per_peer, times.pair_barrier,
                1e-12);
    times.ranks = 3;
    times.barrier = 0;
    times.large = 0;
    EXPECT_EQ(fitted_memory(times).per_peer, 0);
    EXPECT_GT(fitted_memory(times).read_byte, 0);
    EXPECT_GT(fitted_memory(MemoryTimes{}).latency, 0);
}

TEST(Fit, finds_a_limit_of_the_network_only_if_ranks_slow_each_other_down) {
    EXPECT_EQ(shared_bandwidth(4, 1e9, 3.8e9), 0);
    EXPECT_EQ(shared_bandwidth(4, 1e9, 1.2e9), 1.2e9);
    EXPECT_EQ(shared_bandwidth(1, 1e9, 1e9), 0);
}

}  // namespace
}  // namespace nexar::schedule
