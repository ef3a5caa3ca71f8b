// Schedules in shared memory give the defined results, in any order in which the ranks go on.

#include "engine/memory_executor.hpp"

#include <gtest/gtest.h>

#include "memory_ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using engine::MemoryExecutor;
using engine::MemoryLayout;
using schedule::Algorithm;
using schedule::testing::Case;
using State = MemoryExecutor::State;

/// Ranks of one thread, which go on in a random order.
class Ranks {
public:
    Ranks(std::uint32_t world, std::size_t segment_bytes, std::uint64_t seed)
        : random_(seed), segments_(heap_segments(world, segment_bytes)) {
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            executors_.push_back(executor_of(segments_, rank));
        }
    }

    const MemoryLayout& layout() const { return executors_[0]->layout(); }

    /// Runs all cases on all ranks; some ranks are several operations ahead of others.
    void run(const std::vector<Case>& cases, std::size_t pieces = 1) {
        const auto world = static_cast<std::uint32_t>(executors_.size());
        std::vector<std::unique_ptr<MemoryPart>> parts;
        for (const Case& c : cases) {
            for (std::uint32_t rank = 0; rank < world; ++rank) {
                parts.push_back(std::make_unique<MemoryPart>(c, rank, pieces));
            }
        }
        std::vector<std::size_t> next(world, 0);
        std::size_t idle = 0;
        for (std::size_t left = parts.size(); left > 0;) {
            const auto rank = static_cast<std::uint32_t>(random_.below(world));
            if (next[rank] == cases.size()) continue;
            MemoryExecutor& executor = *executors_[rank];
            const MemoryPart& part = *parts[next[rank] * world + rank];
            if (executor.state() != State::waiting) {
                executor.begin(part.call(numbers_ + next[rank]));
            }
            const State state = executor.advance();
            ASSERT_TRUE(state == State::done || state == State::waiting);
            ASSERT_LT(++idle, 1'000'000U) << "no progress in " << to_text(cases[next[rank]]);
            if (state != State::done) continue;
            ASSERT_EQ(part.wrong(), "");
            ++next[rank];
            --left;
            idle = 0;
        }
        numbers_ += cases.size() + random_.below(3);  // as if messages were used in between
    }

private:
    Random random_;
    std::vector<std::shared_ptr<HeapSegment>> segments_;
    std::vector<std::unique_ptr<MemoryExecutor>> executors_;
    std::uint64_t numbers_ = 0;
};

class InMemory : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(InMemory, collectives_are_exact_for_all_worlds_counts_roots_and_pieces) {
    const std::uint64_t seed = test_seed(5);
    for (std::uint32_t world = 1; world <= 9; ++world) {
        Ranks ranks(world, std::size_t{32} << 10U, seed + world);
        for (const std::uint64_t count : {0U, 1U, 2U, world + 1, 40U, 1000U, 7001U}) {
            std::vector<Case> cases;
            for (const bool in_place : {false, true}) {
                for (std::uint32_t root = 0; root < world; root += 1 + world / 3) {
                    Case c{.algorithm = GetParam(), .world = world, .root = root, .count = count};
                    if (c.algorithm->operation == schedule::Collective::barrier) c.count = 0;
                    c.in_place = in_place;
                    cases.push_back(fitted(c, ranks.layout()));
                    if (!schedule::rooted(c.algorithm->operation)) break;
                }
            }
            ASSERT_NO_FATAL_FAILURE(ranks.run(cases, 1 + count % 3));
        }
    }
}

TEST_P(InMemory, operations_of_different_kinds_follow_each_other) {
    const std::uint64_t seed = test_seed(6);
    for (const std::uint32_t world : {2U, 3U, 5U}) {
        Random random(seed + world);
        Ranks ranks(world, std::size_t{16} << 10U, seed);
        const auto all = algorithms_in_memory();
        std::vector<Case> cases;
        for (int i = 0; i < 100; ++i) {
            Case c{.algorithm = i % 2 == 0 ? GetParam() : all[random.below(all.size())],
                   .world = world,
                   .root = static_cast<std::uint32_t>(random.below(world)),
                   .count = random.chance(0.5) ? random.below(10) : random.below(3000)};
            if (c.algorithm->operation == schedule::Collective::barrier) c.count = 0;
            cases.push_back(fitted(c, ranks.layout()));
        }
        ASSERT_NO_FATAL_FAILURE(ranks.run(cases));
    }
}

TEST_P(InMemory, results_that_bypass_the_caches_are_exact) {
    Ranks ranks(3, std::size_t{1} << 20U, test_seed(7));
    Case c{.algorithm = GetParam(), .world = 3, .root = 1, .count = 1'000'003};
    if (c.algorithm->operation == schedule::Collective::barrier) c.count = 0;
    ASSERT_NO_FATAL_FAILURE(ranks.run({fitted(c, ranks.layout())}));
}

INSTANTIATE_TEST_SUITE_P(Every, InMemory, ::testing::ValuesIn(algorithms_in_memory()),
                         [](const auto& one) { return schedule::testing::full_name(*one.param); });

TEST(MemoryLayout, keeps_its_parts_within_the_segment) {
    for (const std::size_t bytes : {16U << 10U, 100'000U, 1U << 20U, 8U << 20U}) {
        const MemoryLayout layout = MemoryLayout::of(bytes).value();
        EXPECT_GE(layout.slot_bytes, 1024U);
        EXPECT_LE(layout.slot(1) + MemoryLayout::kLine + layout.slot_bytes, layout.buffer(0));
        EXPECT_LE(layout.buffer(MemoryLayout::kBuffers - 1) + layout.buffer_bytes, bytes);
        EXPECT_EQ(layout.slot(1) % MemoryLayout::kLine, 0U);
        EXPECT_EQ(layout.buffer(1) % MemoryLayout::kLine, 0U);
    }
    EXPECT_FALSE(MemoryLayout::of(4096));
}

TEST(Progress, rises_in_the_order_in_which_a_rank_publishes) {
    for (const std::uint32_t stages : {1U, 2U}) {
        std::uint64_t last = engine::progress_key(7, engine::kEntered);
        const auto expect_next = [&](std::uint64_t tick) {
            EXPECT_GT(engine::progress_key(7, tick), last);
            last = engine::progress_key(7, tick);
        };
        const std::uint64_t rounds = schedule::most_rounds(stages);
        expect_next(engine::publish_tick(0, 0, stages));
        for (std::uint64_t round = 0; round < rounds; ++round) {
            if (round + 1 < rounds) expect_next(engine::publish_tick(round + 1, 0, stages));
            if (stages == 2) expect_next(engine::publish_tick(round, 1, stages));
            EXPECT_LT(last, engine::progress_key(7, engine::after_round(round, stages)));
        }
        expect_next(engine::kDone);
        expect_next(engine::kGaveUp);
        EXPECT_GT(engine::progress_key(8, engine::kEntered), last);
    }
}

}  // namespace
}  // namespace nexar::testing
