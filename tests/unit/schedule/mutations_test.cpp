// Plants errors in the schedules of every algorithm, in every place: the checker must detect all of
// them. Schedules have no redundant step, slice or release. A dependency may be redundant only if
// messages through other ranks imply it, which the rank itself cannot know; a search that is
// independent of the checker shows this.

#include "unit/schedule/mutations.hpp"

#include <gtest/gtest.h>

#include "schedule/check/checker.hpp"
#include "unit/schedule/cases.hpp"

namespace nexar::schedule {
namespace {

using testing::Case;
using testing::Planted;

struct Tally {
    std::size_t planted = 0;
    std::size_t harmless = 0;
};

bool keeps_order(const Case& c) {
    return traits_for(*c.algorithm, c.links.levels(c.world)).keeps_order;
}

void expect_all_detected(const Case& c, Planted kind, Tally& tally) {
    // Algorithms that do not keep order may use either side.
    if (kind == Planted::side_exchanged && !keeps_order(c)) return;
    // Messages over links have no place.
    const bool places = kind == Planted::place_moved || kind == Planted::stage_changed;
    if (places && c.algorithm->traits.medium != Medium::memory) return;
    const auto asked = testing::requests(c);
    const auto right = testing::schedules(c, asked);
    for (const testing::Mutation& mutation : testing::mutations(kind, right)) {
        ++tally.planted;
        if (!check(*c.algorithm, asked, mutation.schedules)) continue;
        ++tally.harmless;
        ASSERT_TRUE(kind == Planted::dependency_left_out && ordered_by_messages(mutation))
            << testing::to_text(c) << "\nnot detected: " << testing::name(kind) << ", "
            << mutation.what << "\n"
            << to_text(right[mutation.rank]);
    }
}

std::vector<Case> cases(const Algorithm& algorithm) {
    std::vector<Case> all;
    for (std::uint32_t world = 2; world <= (testing::kSanitized ? 5U : 9U); ++world) {
        const auto placements = testing::placements(algorithm, world, 4);
        for (std::size_t i = 0; i < 2 * placements.size(); ++i) {
            const bool in_place = i % 2 == 1;
            Case c{.algorithm = &algorithm, .world = world, .root = world / 3};
            c.links = placements[i / 2];
            c.count = algorithm.operation == Collective::barrier ? 0 : 5 * world + 2;
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

class Mutations : public ::testing::TestWithParam<Algorithm> {};

TEST_P(Mutations, are_all_detected) {
    Tally tally;
    for (const Case& c : cases(GetParam())) {
        ASSERT_EQ(testing::verdict(c), "");
        for (const Planted kind : testing::all_planted()) {
            expect_all_detected(c, kind, tally);
            if (HasFatalFailure()) return;
        }
    }
    std::printf("%zu errors planted, %zu of them shown to be harmless\n", tally.planted,
                tally.harmless);
    EXPECT_GT(tally.planted, 0U);
    // In Bruck in place with seven or more ranks, the order of messages implies that a chunk is no
    // longer in use.
    const bool may = testing::full_name(GetParam()) == "all_to_all_bruck";
    EXPECT_TRUE(may || tally.harmless == 0) << tally.harmless;
}

INSTANTIATE_TEST_SUITE_P(All, Mutations,
                         ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& test) { return testing::full_name(test.param); });

}  // namespace
}  // namespace nexar::schedule
