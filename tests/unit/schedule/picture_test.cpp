// Pictures of every algorithm: they show every message, the right result, and are small.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cases.hpp"
#include "schedule/picture/svg.hpp"
#include "schedule/picture/trace.hpp"
#include "schedule/registry.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::size_t occurrences(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1))
        ++count;
    return count;
}

/// Calls `look(algorithm, world)` for everything that can be drawn.
template <class Look>
void for_each_picture(const Look& look) {
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.traits.needs_tree) continue;
        for (std::uint32_t world = 1; world <= kMostTraced; ++world) {
            SCOPED_TRACE(std::string(schedule::name(algorithm.operation)) + " by " +
                         std::string(algorithm.name) + ", world " + std::to_string(world));
            look(algorithm, world);
        }
    }
}

TEST(Traces, contain_every_message_of_the_schedules) {
    for_each_picture([](const Algorithm& algorithm, std::uint32_t world) {
        Case c{.algorithm = &algorithm, .world = world, .count = 64};
        if (algorithm.operation == Collective::barrier) c.count = 0;
        std::size_t sends = 0;
        for (const Schedule& schedule : schedules(c, requests(c))) {
            sends += static_cast<std::size_t>(std::ranges::count(
                schedule.steps, Kind::send, [](const Step& step) { return step.kind; }));
        }
        EXPECT_EQ(trace(algorithm, world, 0).messages.size(), sends);
    });
}

TEST(Traces, end_with_the_result_of_the_operation) {
    for_each_picture([](const Algorithm& algorithm, std::uint32_t world) {
        const std::uint32_t root = world - 1;
        const Trace traced = trace(algorithm, world, root);
        ASSERT_EQ(traced.held.size(), traced.rounds + 1);
        const auto& last = traced.held.back();
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            switch (algorithm.operation) {
                case Collective::all_reduce:
                    EXPECT_THAT(last[rank], Each(world));
                    break;
                case Collective::reduce:
                    if (rank == root) {
                        EXPECT_THAT(last[rank], Each(world));
                    }
                    break;
                case Collective::scan:
                    EXPECT_THAT(last[rank], Each(rank + 1));
                    break;
                case Collective::broadcast:
                case Collective::all_gather:
                    EXPECT_THAT(last[rank], Each(1U));
                    break;
                case Collective::gather:
                    if (rank == root) {
                        EXPECT_THAT(last[rank], Each(1U));
                    }
                    break;
                default:
                    break;
            }
        }
    });
}

TEST(Traces, divide_the_vector_into_the_pieces_that_travel) {
    const auto pieces = [](Collective operation, std::string_view algorithm, std::uint32_t world) {
        return trace(*find_algorithm(operation, algorithm), world, 0).pieces;
    };
    EXPECT_EQ(pieces(Collective::all_reduce, "tree", 6), 1U);
    EXPECT_EQ(pieces(Collective::all_reduce, "ring", 6), 6U);
    EXPECT_EQ(pieces(Collective::all_reduce, "halving_doubling", 6), 4U);
    EXPECT_EQ(pieces(Collective::all_to_all, "pairwise", 3), 9U);
}

TEST(SvgPictures, have_an_arrow_for_every_message_and_a_mark_for_every_fold) {
    for_each_picture([](const Algorithm& algorithm, std::uint32_t world) {
        const Trace traced = trace(algorithm, world, 0);
        const std::string svg = svg_picture(algorithm, world, 0);
        EXPECT_THAT(svg, StartsWith("<svg "));
        EXPECT_EQ(occurrences(svg, "<path class=\"a\""), traced.messages.size());
        // With two ranks an exclusive scan only copies.
        const std::uint32_t least = algorithm.operation == Collective::exclusive_scan ? 2 : 1;
        const auto folded = std::ranges::count(traced.messages, true, &TracedMessage::folded);
        EXPECT_EQ(folded > 0, reduces(algorithm.operation) && world > least);
        // One more mark in the legend.
        EXPECT_EQ(occurrences(svg, "stroke-width=\"1.6\"/><path"),
                  static_cast<std::size_t>(folded + (folded > 0 ? 1 : 0)));
        EXPECT_EQ(occurrences(svg, "<g"), occurrences(svg, "</g>"));
    });
}

TEST(SvgPictures, are_the_same_bytes_every_time) {
    for_each_picture([](const Algorithm& algorithm, std::uint32_t world) {
        EXPECT_EQ(svg_picture(algorithm, world, 0), svg_picture(algorithm, world, 0));
    });
}

TEST(SvgPictures, of_four_ranks_take_less_than_20_kib) {
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.traits.needs_tree) continue;
        EXPECT_LT(svg_picture(algorithm, 4, 0).size(), 20U << 10U) << algorithm.name;
    }
}

TEST(SvgPictures, name_the_pieces_that_messages_carry) {
    const auto picture = [](Collective operation, std::string_view algorithm) {
        return svg_picture(*find_algorithm(operation, algorithm), 4, 0);
    };
    EXPECT_THAT(picture(Collective::all_reduce, "ring"), HasSubstr(">chunk 3<"));
    EXPECT_THAT(picture(Collective::all_reduce, "halving_doubling"), HasSubstr(">chunks 0-1<"));
    EXPECT_THAT(picture(Collective::reduce, "binomial"), HasSubstr(">fold of 2-3<"));
    EXPECT_THAT(picture(Collective::broadcast, "binomial"), HasSubstr(">vector<"));
    EXPECT_THAT(picture(Collective::all_to_all, "pairwise"), HasSubstr(">chunk 2:3<"));
}

}  // namespace
}  // namespace nexar::schedule::testing
