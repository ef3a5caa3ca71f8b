#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sim/membership_chaos.hpp"

namespace nexar::testing {

inline constexpr unsigned kMostFailures = 8;

/// Runs seeds until several fail.
inline void expect_clean(std::uint64_t first, std::uint64_t seeds,
                         const routing::Topology& topology = {}) {
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t faults = 0;
    std::uint64_t epochs = 0;
    std::uint64_t lost = 0;
    Duration slowest{};
    unsigned failed = 0;
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        const ChaosResult result = MembershipChaos(seed, topology).run();
        if (!result.failure.empty() && ++failed > kMostFailures) return;
        EXPECT_EQ(result.failure, "")
            << "seed " << seed << "; replay with: NEXAR_TEST_SEED=" << seed
            << " membership_sim_tests --gtest_filter=*one_seed_twice*, topology "
            << topology.text();
        faults += result.faults;
        epochs += result.epochs;
        lost += result.majority_lost ? 1 : 0;
        slowest = std::max(slowest, result.calm);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf(
        "%llu seeds, %.0f per second, %llu faults, %llu views, %llu lost their majority, "
        "calm after at most %.1f s\n",
        static_cast<unsigned long long>(seeds), static_cast<double>(seeds) / took.count(),
        static_cast<unsigned long long>(faults), static_cast<unsigned long long>(epochs),
        static_cast<unsigned long long>(lost), std::chrono::duration<double>(slowest).count());
}

}  // namespace nexar::testing
