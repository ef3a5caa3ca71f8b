// Collectives of ranks that read each other's shared buffers in place.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "memory_ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using engine::MemoryExecutor;
using schedule::Algorithm;
using schedule::Collective;
using schedule::testing::Case;
using State = MemoryExecutor::State;

Case random_case(Random& random, std::uint32_t world, const Algorithm* algorithm,
                 const engine::MemoryLayout& layout) {
    Case c{.algorithm = algorithm,
           .world = world,
           .root = static_cast<std::uint32_t>(random.below(world)),
           .count = random.chance(0.3) ? random.below(20) : random.below(6000)};
    if (c.algorithm->operation == Collective::barrier) c.count = 0;
    c.in_place = random.chance(0.5);
    return fitted(c, layout);
}

Sharing random_sharing(Random& random, TestBuffers& buffers) {
    return {.buffers = &buffers,
            .input = random.chance(0.7),
            .output = random.chance(0.7),
            .offset = random.chance(0.5) ? 0 : static_cast<std::size_t>(random.below(1000))};
}

class Shared : public ::testing::TestWithParam<const Algorithm*> {};

// Buffers arrive late now and then, and a rank overwrites its memory as soon as it is done.
TEST_P(Shared, collectives_are_exact_whichever_ranks_share_their_memory) {
    for (std::uint32_t world = 1; world <= 9; ++world) {
        Random random(test_seed(31) + world);
        TestBuffers buffers;
        const auto segments = heap_segments(world, kBytes);
        std::vector<std::unique_ptr<MemoryExecutor>> executors;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            executors.push_back(executor_of(segments, rank, &buffers));
        }
        constexpr std::size_t kCases = 20;
        std::vector<Case> cases;
        std::vector<std::unique_ptr<MemoryPart>> parts;
        for (std::size_t i = 0; i < kCases; ++i) {
            cases.push_back(random_case(random, world, GetParam(), executors[0]->layout()));
            const bool all = random.chance(0.4);
            for (std::uint32_t rank = 0; rank < world; ++rank) {
                Sharing sharing = random_sharing(random, buffers);
                if (all) sharing.input = sharing.output = true;
                parts.push_back(
                    std::make_unique<MemoryPart>(cases.back(), rank, 1 + i % 3, sharing));
            }
        }
        std::vector<std::size_t> next(world, 0);
        std::size_t idle = 0;
        for (std::size_t left = parts.size(); left > 0;) {
            buffers.hide(random.chance(0.2));
            const auto rank = static_cast<std::uint32_t>(random.below(world));
            if (next[rank] == kCases) continue;
            MemoryExecutor& executor = *executors[rank];
            const MemoryPart& part = *parts[next[rank] * world + rank];
            if (executor.state() != State::waiting) executor.begin(part.call(next[rank]));
            const State state = executor.advance();
            ASSERT_TRUE(state == State::done || state == State::waiting)
                << "rank " << rank << " because of " << executor.culprit() << " in "
                << to_text(cases[next[rank]]) << (state == State::passed ? " passed" : " differs");
            ASSERT_LT(++idle, 1'000'000U) << "no progress in " << to_text(cases[next[rank]]);
            if (state != State::done) continue;
            ASSERT_EQ(part.wrong(), "");
            part.spoil();
            ++next[rank];
            --left;
            idle = 0;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Shared, ::testing::ValuesIn(algorithms_in_memory()),
                         [](const auto& one) { return schedule::testing::full_name(*one.param); });

/// Runs random collectives as one rank of several threads. Returns what went wrong.
std::string run(MemoryExecutor& executor, TestBuffers& buffers, const std::vector<Case>& cases,
                std::uint32_t rank, const std::atomic<bool>& stop) {
    Random random(test_seed(32) + rank);
    std::uint64_t number = 0;
    for (const Case& c : cases) {
        const MemoryPart part(c, rank, 1, random_sharing(random, buffers));
        executor.begin(part.call(number++));
        State state = executor.advance();
        for (; state == State::waiting && !stop; state = executor.advance()) {
            std::this_thread::yield();
        }
        if (state != State::done) return to_text(c) + " failed";
        if (const std::string wrong = part.wrong(); !wrong.empty()) return wrong;
    }
    return {};
}

class SharedInThreads : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(SharedInThreads, random_collectives_are_exact) {
    const std::uint32_t world = GetParam();
    Random random(test_seed(33) + world);
    TestBuffers buffers;
    const auto segments = heap_segments(world, kBytes);
    std::vector<std::unique_ptr<MemoryExecutor>> executors;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        executors.push_back(executor_of(segments, rank, &buffers));
    }
    const auto all = algorithms_in_memory();
    std::vector<Case> cases;
    for (int i = 0; i < (schedule::testing::kSanitized ? 200 : 1500); ++i) {
        cases.push_back(
            random_case(random, world, all[random.below(all.size())], executors[0]->layout()));
    }
    std::atomic<bool> stop = false;
    std::vector<std::string> wrong(world);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        threads.emplace_back([&, rank] {
            wrong[rank] = run(*executors[rank], buffers, cases, rank, stop);
            if (!wrong[rank].empty()) stop = true;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : wrong) EXPECT_EQ(one, "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, SharedInThreads, ::testing::Values(2U, 3U, 4U));

const Algorithm* algorithm(Collective what, const char* name) {
    return schedule::find_algorithm(what, name);
}

TEST(SharedBuffers, are_read_in_place_and_not_copied) {
    for (const auto& [what, name] :
         {std::pair(Collective::all_reduce, "slices"), std::pair(Collective::broadcast, "slots"),
          std::pair(Collective::all_gather, "slots"), std::pair(Collective::all_to_all, "slots"),
          std::pair(Collective::reduce_scatter, "slots"), std::pair(Collective::scatter, "slots"),
          std::pair(Collective::gather, "slots"), std::pair(Collective::scan, "slots")}) {
        TestBuffers buffers;
        const auto segments = heap_segments(2, kBytes);
        const auto first = executor_of(segments, 0, &buffers);
        const auto second = executor_of(segments, 1, &buffers);
        const Case c = fitted({.algorithm = algorithm(what, name), .world = 2, .count = 6000},
                              first->layout());
        ASSERT_NE(c.segment, 0U);
        const Sharing sharing{.buffers = &buffers, .input = true, .output = true};
        const MemoryPart one(c, 0, 1, sharing);
        const MemoryPart two(c, 1, 1, sharing);
        first->begin(one.call(0));
        second->begin(two.call(0));
        for (int i = 0; i < 1000; ++i) {
            first->advance();
            second->advance();
        }
        ASSERT_EQ(first->state(), State::done) << schedule::name(what);
        ASSERT_EQ(second->state(), State::done) << schedule::name(what);
        EXPECT_EQ(one.wrong(), "");
        EXPECT_EQ(two.wrong(), "");
        for (const auto& segment : segments) {
            const auto copies = segment->bytes().subspan(first->layout().buffer(0));
            EXPECT_TRUE(std::ranges::all_of(copies, [](std::byte b) { return b == std::byte{}; }))
                << schedule::name(what);
        }
    }
}

TEST(SharedBuffers, are_copied_where_the_rank_itself_overwrites_them_too_early) {
    const auto shown = [](Collective what, const char* name, bool in_place, std::uint32_t stage) {
        Case c{.algorithm = algorithm(what, name), .world = 4, .root = 1, .count = 4000};
        c.segment = 100;
        c.in_place = in_place;
        return MemoryPart(c, 1).plan().shown(stage).has_value();
    };
    for (const bool in_place : {false, true}) {
        EXPECT_TRUE(shown(Collective::all_reduce, "slices", in_place, 0));
        EXPECT_TRUE(shown(Collective::all_reduce, "slices", in_place, 1));
        EXPECT_TRUE(shown(Collective::reduce, "slices", in_place, 0));
        EXPECT_TRUE(shown(Collective::broadcast, "slots", in_place, 0));
        EXPECT_TRUE(shown(Collective::all_gather, "slots", in_place, 0));
        EXPECT_TRUE(shown(Collective::scatter, "slots", in_place, 0));
        EXPECT_TRUE(shown(Collective::reduce_scatter, "slots", in_place, 0));
        // Here a rank reads what another one replaces at any time.
        EXPECT_EQ(shown(Collective::all_reduce, "slots", in_place, 0), !in_place);
        EXPECT_EQ(shown(Collective::all_to_all, "slots", in_place, 0), !in_place);
        EXPECT_EQ(shown(Collective::scan, "slots", in_place, 0), !in_place);
    }
}

TEST(SharedBuffers, keep_their_owner_in_the_operation_until_all_have_read) {
    TestBuffers buffers;
    const auto segments = heap_segments(2, kBytes);
    const auto root = executor_of(segments, 0, &buffers);
    const auto reader = executor_of(segments, 1, &buffers);
    const Case c =
        fitted({.algorithm = algorithm(Collective::broadcast, "slots"), .world = 2, .count = 6000},
               root->layout());
    const MemoryPart one(c, 0, 1, {.buffers = &buffers, .output = true});
    const MemoryPart two(c, 1);
    root->begin(one.call(0));
    for (int i = 0; i < 200; ++i) EXPECT_EQ(root->advance(), State::waiting);
    EXPECT_TRUE(root->needs(1));
    EXPECT_TRUE(root->awaits(1));
    buffers.hide(true);
    reader->begin(two.call(0));
    for (int i = 0; i < 200; ++i) EXPECT_EQ(reader->advance(), State::waiting);
    EXPECT_TRUE(reader->awaits(0));
    EXPECT_TRUE(reader->needs(0));
    buffers.hide(false);
    EXPECT_EQ(reader->advance(), State::done);
    EXPECT_EQ(two.wrong(), "");
    EXPECT_EQ(root->advance(), State::done);
    EXPECT_FALSE(root->needs(1));
}

}  // namespace
}  // namespace nexar::testing
