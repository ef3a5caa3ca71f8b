// Runs the schedules on numbers, with events in random order, and compares with a plain reference:
// code that is independent of the checker confirms what the checker proved on symbols.

#include <gtest/gtest.h>

#include "schedule/check/checker.hpp"
#include "support/seed.hpp"
#include "unit/schedule/cases.hpp"
#include "unit/schedule/expected.hpp"
#include "unit/schedule/interpreter.hpp"
#include "unit/schedule/mutations.hpp"

namespace nexar::schedule {
namespace {

using testing::Case;
using testing::expected;
using testing::operator_for;
using Elements = std::vector<std::uint64_t>;

/// Returns an empty string if the run succeeded and every rank has its result.
std::string outcome(const Case& c, const std::vector<Request>& asked,
                    const std::vector<Schedule>& schedules, Random& random) {
    testing::Interpreter interpreter(asked, schedules, operator_for(c), random,
                                     c.algorithm->traits.medium);
    if (const std::string wrong = interpreter.run(); !wrong.empty()) return wrong;
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
        if (c.algorithm->operation == Collective::exclusive_scan && rank == 0) continue;
        const Slice result = result_of(asked[rank]);
        const auto& output = interpreter.output(rank);
        const auto begin = output.begin() + static_cast<std::ptrdiff_t>(result.offset);
        const Elements got(begin, begin + static_cast<std::ptrdiff_t>(result.count));
        if (got != expected(c, asked, rank)) return "wrong result at rank " + std::to_string(rank);
    }
    return {};
}

std::vector<Case> cases(const Algorithm& algorithm, std::uint32_t largest) {
    std::vector<Case> all;
    for (std::uint32_t world = 1; world <= largest; ++world) {
        const auto placements = testing::placements(algorithm, world, 6);
        for (std::size_t i = 0; i < 2 * placements.size(); ++i) {
            const bool in_place = i % 2 == 1;
            Case c{.algorithm = &algorithm, .world = world, .root = world / 2};
            c.links = placements[i / 2];
            c.count = algorithm.operation == Collective::barrier ? 0 : 5 * world + 2;
            c.in_place = in_place;
            c.window = 2;
            all.push_back(c);
            if (algorithm.traits.segments) {
                c.segment = 2;
                all.push_back(c);
            }
            c.shuffled = world + i + 1;
            all.push_back(c);
            c.uneven = 7 * world + 1;
            if (algorithm.traits.takes_counts) all.push_back(c);
        }
    }
    return all;
}

class Execution : public ::testing::TestWithParam<Algorithm> {};

TEST_P(Execution, gives_the_defined_result_in_any_order_of_events) {
    Random random(test_seed(2718));
    for (const Case& c : cases(GetParam(), 9)) {
        const auto asked = testing::requests(c);
        const auto built = testing::schedules(c, asked);
        for (int i = 0; i < (testing::kSanitized ? 2 : 10); ++i)
            ASSERT_EQ(outcome(c, asked, built, random), "") << testing::to_text(c);
    }
}

/// Shows that the checker does not reject harmless schedules: without a dependency some order of
/// events fails. Windows limit load and do not affect results, and a barrier has no result.
TEST_P(Execution, fails_in_some_order_if_a_dependency_is_missing) {
    const Algorithm& algorithm = GetParam();
    if (algorithm.traits.window != 0 || algorithm.operation == Collective::barrier) return;
    Random random(test_seed(3141));
    std::size_t planted = 0;
    std::size_t seen = 0;
    for (const Case& c : cases(algorithm, testing::kSanitized ? 3 : 5)) {
        const auto asked = testing::requests(c);
        const auto right = testing::schedules(c, asked);
        for (const auto kind :
             {testing::Planted::dependency_left_out, testing::Planted::release_not_awaited}) {
            for (const auto& mutation : testing::mutations(kind, right)) {
                if (check(algorithm, asked, mutation.schedules)) continue;
                ++planted;
                for (int i = 0; i < 100; ++i) {
                    if (outcome(c, asked, mutation.schedules, random).empty()) continue;
                    ++seen;
                    break;
                }
            }
        }
    }
    std::printf("%zu of %zu missing dependencies caused a failure\n", seen, planted);
    EXPECT_GE(seen * 10, planted * 9);
}

INSTANTIATE_TEST_SUITE_P(All, Execution,
                         ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& test) { return testing::full_name(test.param); });

}  // namespace
}  // namespace nexar::schedule
