// Ranks in threads of their own share memory. ThreadSanitizer checks the order of all accesses.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "memory_ranks.hpp"
#include "support/seed.hpp"
#include "unit/engine/memory_engines.hpp"

namespace nexar::testing {
namespace {

using engine::MemoryExecutor;
using schedule::testing::Case;
using State = MemoryExecutor::State;

/// Runs the cases as one rank. Returns what went wrong, or an empty string.
std::string run(MemoryExecutor& executor, const std::vector<Case>& cases, std::uint32_t rank,
                const std::atomic<bool>& stop) {
    std::uint64_t number = 0;
    for (const Case& c : cases) {
        const MemoryPart part(c, rank);
        executor.begin(part.call(number++));
        State state = executor.advance();
        for (; state == State::waiting && !stop; state = executor.advance()) {
            std::this_thread::yield();
        }
        if (state != State::done) return "operation " + std::to_string(number - 1) + " failed";
        if (const std::string wrong = part.wrong(); !wrong.empty()) return wrong;
    }
    return {};
}

class InThreads : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(InThreads, random_collectives_are_exact) {
    const std::uint32_t world = GetParam();
    const std::uint64_t seed = test_seed(9) + world;
    Random random(seed);
    const auto segments = heap_segments(world, std::size_t{16} << 10U);
    std::vector<std::unique_ptr<MemoryExecutor>> executors;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        executors.push_back(executor_of(segments, rank));
    }
    const auto all = algorithms_in_memory();
    std::vector<Case> cases;
    for (int i = 0; i < (schedule::testing::kSanitized ? 400 : 3000); ++i) {
        Case c{.algorithm = all[random.below(all.size())],
               .world = world,
               .root = static_cast<std::uint32_t>(random.below(world)),
               .count = random.chance(0.7) ? random.below(20) : random.below(3000)};
        if (c.algorithm->operation == schedule::Collective::barrier) c.count = 0;
        c.in_place = random.chance(0.5);
        cases.push_back(fitted(c, executors[0]->layout()));
    }
    std::atomic<bool> stop = false;
    std::vector<std::string> wrong(world);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        threads.emplace_back([&, rank] {
            wrong[rank] = run(*executors[rank], cases, rank, stop);
            if (!wrong[rank].empty()) stop = true;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : wrong) EXPECT_EQ(one, "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, InThreads, ::testing::Values(2U, 3U, 4U));

/// The sum over all ranks of element i in call k, if each rank passes value_of().
std::uint64_t value_of(std::uint32_t rank, std::uint64_t call, std::uint64_t i) {
    return (rank + 1) * 1'000'003 + call * 101 + i;
}

TEST_P(InThreads, engines_run_calls_one_after_the_other) {
    const std::uint32_t world = GetParam();
    MemoryEngines engines(world, std::size_t{64} << 10U);
    constexpr std::array<std::size_t, 5> kCounts{1, 3, 700, 20'000, 1};
    const int calls = schedule::testing::kSanitized ? 200 : 2000;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        threads.emplace_back([&, rank] {
            for (std::uint64_t call = 0; call < static_cast<std::uint64_t>(calls); ++call) {
                std::vector<std::uint64_t> data(kCounts.at(call % kCounts.size()));
                for (std::uint64_t i = 0; i < data.size(); ++i) data[i] = value_of(rank, call, i);
                engines.start(rank, schedule::Collective::all_reduce, data);
                while (!engines.poll(rank)) std::this_thread::yield();
                if (engines.failed(rank)) ++wrong;
                for (std::uint64_t i = 0; i < data.size(); ++i) {
                    std::uint64_t sum = 0;
                    for (std::uint32_t r = 0; r < world; ++r) sum += value_of(r, call, i);
                    if (data[i] != sum) ++wrong;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace nexar::testing
