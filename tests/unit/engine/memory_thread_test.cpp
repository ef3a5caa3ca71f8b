// Ranks in threads of their own share memory. ThreadSanitizer checks the order of all accesses.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "memory_ranks.hpp"
#include "support/seed.hpp"

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

}  // namespace
}  // namespace nexar::testing
