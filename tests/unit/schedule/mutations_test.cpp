// Errors planted in the schedules of every algorithm, in every place: the checker must see all of
// them. Schedules have no step, slice or release to spare. A dependency may be left out only if
// messages through other ranks imply it, which the rank itself cannot know; that is shown by
// another search than the checker's.

#include "unit/schedule/mutations.hpp"

#include <gtest/gtest.h>

#include "schedule/checker.hpp"
#include "unit/schedule/cases.hpp"

namespace nexar::schedule {
namespace {

using testing::Case;
using testing::Planted;

bool applies(Planted planted, const Algorithm& algorithm) {
    // Without a promise about order, either side is right.
    return planted != Planted::side_exchanged || algorithm.traits.keeps_order;
}

/// Plants every error in every place; the number of them.
std::size_t expect_all_seen(const Case& c, Planted planted) {
    const auto asked = testing::requests(c);
    const auto right = testing::schedules(c, asked);
    EXPECT_TRUE(check(*c.algorithm, asked, right)) << testing::to_text(c);
    const auto wrong = testing::mutations(planted, right);
    for (const testing::Mutation& mutation : wrong) {
        if (planted == Planted::dependency_left_out && ordered_by_messages(mutation)) continue;
        EXPECT_FALSE(check(*c.algorithm, asked, mutation.schedules))
            << testing::to_text(c) << "\nnot seen: " << testing::name(planted) << ", "
            << mutation.what << "\n"
            << to_text(right[0]);
        if (::testing::Test::HasFailure()) break;
    }
    return wrong.size();
}

std::vector<Case> cases(const Algorithm& algorithm) {
    std::vector<Case> all;
    for (std::uint32_t world = 2; world <= (testing::kSanitized ? 5U : 9U); ++world) {
        for (const bool in_place : {false, true}) {
            Case c{.algorithm = &algorithm, .world = world, .root = world / 3};
            c.count = algorithm.operation == Operation::barrier ? 0 : 5 * world + 2;
            c.in_place = in_place;
            c.window = 2;
            all.push_back(c);
            c.root = world - 1;
            if (rooted(algorithm.operation)) all.push_back(c);
            c.segment = testing::some_segment(c);
            if (algorithm.traits.segments) all.push_back(c);
        }
    }
    return all;
}

class MutationsOf : public ::testing::TestWithParam<std::tuple<Algorithm, Planted>> {};

TEST_P(MutationsOf, are_all_seen) {
    const auto& [algorithm, planted] = GetParam();
    if (!applies(planted, algorithm)) return;
    std::size_t count = 0;
    for (const Case& c : cases(algorithm)) {
        count += expect_all_seen(c, planted);
        if (HasFailure()) return;
    }
    std::printf("%zu planted\n", count);
}

INSTANTIATE_TEST_SUITE_P(All, MutationsOf,
                         ::testing::Combine(::testing::ValuesIn(algorithms().begin(),
                                                                algorithms().end()),
                                            ::testing::ValuesIn(testing::all_planted())),
                         [](const auto& test) {
                             return testing::full_name(std::get<0>(test.param)) + "_with_" +
                                    testing::name(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace nexar::schedule
