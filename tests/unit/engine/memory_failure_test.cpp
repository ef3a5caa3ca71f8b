// Operations in shared memory that some ranks give up, that differ, and segments with nonsense.

#include <gtest/gtest.h>

#include "memory_ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using engine::MemoryExecutor;
using schedule::Collective;
using schedule::testing::Case;
using State = MemoryExecutor::State;

class Pair {
public:
    Pair()
        : segments_(heap_segments(2, kBytes)),
          first_(executor_of(segments_, 0)),
          second_(executor_of(segments_, 1)) {}

    MemoryExecutor& rank(std::uint32_t i) { return i == 0 ? *first_ : *second_; }
    HeapSegment& segment(std::uint32_t i) { return *segments_[i]; }

    /// Runs one operation on both ranks.
    void expect_exact(const Case& c, std::uint64_t number) {
        const MemoryPart one(c, 0);
        const MemoryPart two(c, 1);
        rank(0).begin(one.call(number));
        rank(1).begin(two.call(number));
        State a = State::waiting;
        State b = State::waiting;
        for (int i = 0; i < 100'000 && (a != State::done || b != State::done); ++i) {
            if (a == State::waiting) a = rank(0).advance();
            if (b == State::waiting) b = rank(1).advance();
        }
        ASSERT_EQ(a, State::done);
        ASSERT_EQ(b, State::done);
        EXPECT_EQ(one.wrong(), "");
        EXPECT_EQ(two.wrong(), "");
    }

private:
    std::vector<std::shared_ptr<HeapSegment>> segments_;
    std::unique_ptr<MemoryExecutor> first_;
    std::unique_ptr<MemoryExecutor> second_;
};

Case all_reduce(const char* name, std::uint64_t count, Pair& pair) {
    const Case c{.algorithm = schedule::find_algorithm(Collective::all_reduce, name),
                 .world = 2,
                 .count = count};
    return fitted(c, pair.rank(0).layout());
}

class GivenUp : public ::testing::TestWithParam<std::pair<const char*, std::uint64_t>> {};

TEST_P(GivenUp, operation_is_noticed_and_later_ones_read_no_stale_data) {
    Pair pair;
    const auto [name, count] = GetParam();
    const Case c = all_reduce(name, count, pair);
    std::uint64_t number = 0;
    for (int before = 0; before < 3; ++before) pair.expect_exact(c, number++);
    // Rank 1 never takes part in this one, and rank 0 notices in the next one of rank 1.
    const MemoryPart waits(c, 0);
    pair.rank(0).begin(waits.call(number));
    EXPECT_EQ(settle(pair.rank(0)), State::waiting);
    EXPECT_TRUE(pair.rank(0).needs(1));
    const MemoryPart next(c, 1);
    pair.rank(1).begin(next.call(number + 1));
    EXPECT_EQ(settle(pair.rank(1)), State::waiting);
    EXPECT_EQ(settle(pair.rank(0)), State::passed);
    EXPECT_EQ(pair.rank(0).culprit(), 1U);
    EXPECT_EQ(pair.rank(0).state(), State::waiting);
    pair.rank(0).give_up();
    pair.rank(1).give_up();
    number += 2;
    for (int after = 0; after < 6; ++after) pair.expect_exact(c, number++);
}

TEST_P(GivenUp, operation_of_a_rank_that_had_published_can_end_at_the_other) {
    Pair pair;
    const auto [name, count] = GetParam();
    const Case c = all_reduce(name, count, pair);
    const MemoryPart one(c, 0);
    const MemoryPart two(c, 1);
    pair.rank(1).begin(two.call(4));
    EXPECT_EQ(settle(pair.rank(1)), State::waiting);
    pair.rank(1).give_up();
    pair.rank(0).begin(one.call(4));
    const State state = settle(pair.rank(0));
    // With one stage rank 1 had published everything.
    if (one.plan().stages() == 1 && one.plan().rounds() <= 2) {
        EXPECT_EQ(state, State::done);
        EXPECT_EQ(one.wrong(), "");
    } else {
        EXPECT_EQ(state, State::passed);
        pair.rank(0).give_up();
    }
    for (std::uint64_t number = 5; number < 12; ++number) pair.expect_exact(c, number);
}

INSTANTIATE_TEST_SUITE_P(Every, GivenUp,
                         ::testing::Values(std::pair("slots", 1U), std::pair("slots", 20U),
                                           std::pair("slots", 500U), std::pair("slots", 5000U),
                                           std::pair("slices", 100U), std::pair("slices", 5000U)));

TEST(MemoryExecutor, tells_both_ranks_that_their_calls_differ) {
    Pair pair;
    for (const std::uint64_t count : {1U, 5000U}) {
        const Case c = all_reduce("slots", 1, pair);
        const Case d = all_reduce("slots", count, pair);
        const MemoryPart one(c, 0);
        const MemoryPart two(d, 1);
        pair.rank(0).begin(one.call(count, 77));
        pair.rank(1).begin(two.call(count, 78));
        EXPECT_EQ(pair.rank(0).advance(), State::waiting);
        EXPECT_EQ(settle(pair.rank(1)), State::differs);
        EXPECT_EQ(settle(pair.rank(0)), State::differs);
        pair.rank(0).give_up();
        pair.rank(1).give_up();
        pair.expect_exact(c, count + 1);
        pair.expect_exact(d, count + 2);
    }
}

TEST(MemoryExecutor, does_not_overwrite_what_a_slow_reader_still_needs) {
    Pair pair;
    const Case c{.algorithm = schedule::find_algorithm(Collective::broadcast, "slots"),
                 .world = 2,
                 .count = 30};
    std::vector<std::unique_ptr<MemoryPart>> root;
    for (std::uint64_t i = 0; i < 2; ++i) {
        root.push_back(std::make_unique<MemoryPart>(c, 0));
        pair.rank(0).begin(root.back()->call(i));
        EXPECT_EQ(pair.rank(0).advance(), State::done);
    }
    const MemoryPart third(c, 0);
    pair.rank(0).begin(third.call(2));
    EXPECT_EQ(settle(pair.rank(0)), State::waiting);
    EXPECT_TRUE(pair.rank(0).needs(1));
    for (std::uint64_t i = 0; i < 3; ++i) {
        const MemoryPart reader(c, 1);
        pair.rank(1).begin(reader.call(i));
        EXPECT_EQ(settle(pair.rank(1)), State::done);
        EXPECT_EQ(reader.wrong(), "");
        EXPECT_EQ(settle(pair.rank(0)), i == 0 ? State::waiting : State::done);
    }
}

// A sanitizer reports accesses outside of the segments.
TEST(MemoryExecutor, survives_nonsense_in_the_segment_of_another_rank) {
    Random random(test_seed(8));
    const auto all = algorithms_in_memory();
    for (int i = 0; i < 3000; ++i) {
        Pair pair;
        Case c{.algorithm = all[random.below(all.size())],
               .world = 2,
               .root = static_cast<std::uint32_t>(random.below(2)),
               .count = random.below(2000)};
        if (c.algorithm->operation == Collective::barrier) c.count = 0;
        c = fitted(c, pair.rank(0).layout());
        const std::uint64_t number = random.below(4);
        const MemoryPart part(c, 0);
        pair.rank(0).begin(part.call(number));
        const auto words =
            std::span(reinterpret_cast<std::uint64_t*>(pair.segment(1).bytes().data()), kBytes / 8);
        for (int round = 0; round < 20; ++round) {
            for (std::uint64_t& word : words) {
                if (random.chance(0.5)) word = random.next() >> random.below(64);
            }
            // Sometimes the header is right, and the rest is not.
            const std::size_t slot = pair.rank(0).layout().slot(number) / 8;
            if (random.chance(0.7)) {
                words[slot] = number + 1;
                words[slot + 1] = 1;
                words[slot + 2] = part.plan().extent_bytes();
            }
            if (pair.rank(0).advance() != State::waiting) break;
        }
        pair.rank(0).give_up();
    }
}

}  // namespace
}  // namespace nexar::testing
