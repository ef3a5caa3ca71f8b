// The checker proves every algorithm: in worlds of 1 to 33, 64, 100 and 128 ranks, for every root
// (a few in the largest worlds), for counts around the world size and large ones, in place and out
// of place, with and without segments; two-level algorithms for many placements of the ranks on
// hosts.

#include <gtest/gtest.h>

#include <set>

#include "unit/schedule/cases.hpp"

namespace nexar::schedule {
namespace {

using testing::Case;
using testing::kSanitized;

constexpr std::uint64_t kPrime = 1009;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 33U;

class Algorithms : public ::testing::TestWithParam<Algorithm> {};

std::set<std::uint32_t> roots(const Algorithm& algorithm, std::uint32_t world) {
    if (!rooted(algorithm.operation)) return {0};
    if (world > (algorithm.traits.two_level ? 12U : 33U)) return {0, 1, world / 2, world - 1};
    std::set<std::uint32_t> all;
    for (std::uint32_t root = 0; root < world; ++root) all.insert(root);
    return all;
}

std::set<std::uint64_t> counts(const Algorithm& algorithm, std::uint32_t world) {
    if (algorithm.operation == Collective::barrier) return {0};
    return {0, 1, world - 1, world, world + 1, kPrime, kLarge};
}

/// In place and out of place, with and without segments.
void expect_proven(Case c) {
    for (const bool in_place : {false, true}) {
        c.in_place = in_place;
        c.segment = 0;
        ASSERT_EQ(testing::verdict(c), "");
        if (!c.algorithm->traits.segments) continue;
        c.segment = testing::some_segment(c);
        ASSERT_EQ(testing::verdict(c), "");
    }
}

void expect_proven(const Algorithm& algorithm, std::uint32_t world) {
    // The placements that come first are the most common ones.
    const std::size_t most = world > 33 ? 2 : world > 16 ? 4 : 100;
    for (const Links& links : testing::placements(algorithm, world, most))
        for (const std::uint32_t root : roots(algorithm, world))
            for (const std::uint64_t count : counts(algorithm, world)) {
                Case c{.algorithm = &algorithm, .world = world, .root = root, .count = count};
                c.links = links;
                expect_proven(c);
                if (::testing::Test::HasFatalFailure()) return;
            }
}

void expect_proven(const Algorithm& algorithm, std::uint32_t first, std::uint32_t last) {
    // A sanitizer is ten times slower and sees the same code in every world.
    const std::uint32_t stride = kSanitized ? 5 : 1;
    for (std::uint32_t world = first; world <= last; world += stride) {
        expect_proven(algorithm, world);
        if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST_P(Algorithms, are_proven_in_worlds_up_to_16) {
    expect_proven(GetParam(), 1, 16);
}

TEST_P(Algorithms, are_proven_in_worlds_up_to_33) {
    expect_proven(GetParam(), 17, 33);
}

TEST_P(Algorithms, are_proven_in_worlds_of_64_100_and_128) {
    for (const std::uint32_t world : {64U, 100U, 128U}) {
        if (kSanitized && world > 64) return;
        expect_proven(GetParam(), world);
        if (HasFatalFailure()) return;
    }
}

TEST_P(Algorithms, are_proven_for_uneven_and_zero_counts_if_they_support_counts) {
    if (!GetParam().traits.takes_counts) return;
    for (std::uint32_t world = 1; world <= (kSanitized ? 9U : 33U); ++world) {
        for (const std::uint64_t most : {std::uint64_t{1}, kPrime, kLarge}) {
            for (std::uint64_t seed = 1; seed <= 3; ++seed) {
                Case c{.algorithm = &GetParam(), .world = world, .root = world / 2, .count = most};
                c.uneven = seed * 1000 + world;
                c.window = 1 + static_cast<std::uint32_t>(seed);
                for (const Links& links : testing::placements(GetParam(), world, 5)) {
                    c.links = links;
                    expect_proven(c);
                    if (HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST_P(Algorithms, are_proven_for_rings_in_any_order_of_ranks) {
    for (std::uint32_t world = 2; world <= (kSanitized ? 8U : 17U); ++world) {
        for (const std::uint32_t root : roots(GetParam(), world)) {
            for (const std::uint64_t count : counts(GetParam(), world)) {
                Case c{.algorithm = &GetParam(), .world = world, .root = root, .count = count};
                c.shuffled = 100 * world + root + 1;
                c.links = testing::placements(GetParam(), world).front();
                expect_proven(c);
                if (GetParam().traits.takes_counts) c.uneven = c.shuffled;
                expect_proven(c);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(Algorithms, build_schedules_whose_length_does_not_depend_on_the_count) {
    for (const std::uint32_t world : {2U, 5U, 8U, 13U}) {
        Case c{.algorithm = &GetParam(), .world = world};
        c.count = GetParam().operation == Collective::barrier ? 0 : world;
        c.segment = 1;
        c.links = testing::placements(GetParam(), world).front();
        const auto small = testing::schedules(c, testing::requests(c));
        c.count *= std::uint64_t{1} << 40U;
        const auto large = testing::schedules(c, testing::requests(c));
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            EXPECT_EQ(small[rank].steps.size(), large[rank].steps.size()) << testing::to_text(c);
            EXPECT_EQ(small[rank].dependencies.size(), large[rank].dependencies.size());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Algorithms,
                         ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& test) { return testing::full_name(test.param); });

}  // namespace
}  // namespace nexar::schedule
