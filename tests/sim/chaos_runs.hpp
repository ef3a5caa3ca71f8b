#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nexar/log.hpp>

#include "chaos/run.hpp"

namespace nexar::testing {

/// Runs seeds until several break a rule.
inline void expect_promises_kept(std::uint64_t first, std::uint64_t seeds) {
    constexpr unsigned kMostFailures = 4;
    set_log_level(LogLevel::off);
    const std::clock_t began = std::clock();
    unsigned failed = 0;
    std::uint64_t faults = 0;
    std::uint64_t views = 0;
    std::uint64_t operations = 0;
    std::uint64_t lost = 0;
    Duration slowest{};
    std::uint64_t ran = 0;
    for (; ran < seeds && failed < kMostFailures; ++ran) {
        const chaos::RunOptions options{.seed = first + ran};
        const chaos::RunResult result = chaos::run(options);
        EXPECT_EQ(result.rule, "") << chaos::summary_of(options, result)
                                   << "repeat it with: " << chaos::command_of(options);
        if (!result.rule.empty()) ++failed;
        faults += result.faults;
        views += result.views;
        operations += result.operations;
        lost += result.beyond_repair ? 1 : 0;
        slowest = std::max(slowest, result.slowest);
    }
    const double took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    std::printf(
        "%llu seeds, %.2f per second of processor time, %llu faults, %llu views, %llu operations, "
        "%llu beyond repair, slowest operation %.0f ms\n",
        static_cast<unsigned long long>(ran), static_cast<double>(ran) / took,
        static_cast<unsigned long long>(faults), static_cast<unsigned long long>(views),
        static_cast<unsigned long long>(operations), static_cast<unsigned long long>(lost),
        std::chrono::duration<double, std::milli>(slowest).count());
}

}  // namespace nexar::testing
