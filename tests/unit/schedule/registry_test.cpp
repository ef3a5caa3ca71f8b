#include "schedule/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "schedule/request.hpp"

namespace nexar::schedule {
namespace {

using ::testing::HasSubstr;

bool any_of(Collective operation, bool Traits::* trait) {
    return std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm& a) {
        return a.operation == operation && a.traits.*trait;
    });
}

TEST(Registry, has_an_order_keeping_algorithm_for_every_operation_that_reduces) {
    for (const Collective operation :
         {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::scan,
          Collective::exclusive_scan})
        EXPECT_TRUE(any_of(operation, &Traits::keeps_order)) << name(operation);
}

TEST(Registry, has_a_canonical_algorithm_where_results_must_be_reproducible) {
    for (const Collective operation :
         {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
        EXPECT_TRUE(any_of(operation, &Traits::canonical)) << name(operation);
}

TEST(Registry, has_an_algorithm_with_counts_for_every_v_variant) {
    for (const Collective operation :
         {Collective::all_gather, Collective::gather, Collective::scatter,
          Collective::reduce_scatter, Collective::all_to_all})
        EXPECT_TRUE(any_of(operation, &Traits::takes_counts)) << name(operation);
}

TEST(Registry, finds_exactly_the_algorithm_of_a_name) {
    std::set<std::pair<Collective, std::string_view>> names;
    for (const Algorithm& algorithm : algorithms()) {
        EXPECT_EQ(find_algorithm(algorithm.operation, algorithm.name), &algorithm);
        EXPECT_TRUE(names.insert({algorithm.operation, algorithm.name}).second);
    }
    EXPECT_EQ(find_algorithm(Collective::barrier, "ring"), nullptr);
}

std::string document(const std::string& path) {
    std::ifstream file(NEXAR_SOURCE_DIR "/" + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Registry, has_as_many_algorithms_as_the_documents_say) {
    const auto in_memory = std::ranges::count(
        algorithms(), Medium::memory, [](const Algorithm& one) { return one.traits.medium; });
    const auto two_level = std::ranges::count(
        algorithms(), true, [](const Algorithm& one) { return one.traits.two_level; });
    const std::string all = std::to_string(algorithms().size());
    EXPECT_THAT(document("README.md"), HasSubstr("the fastest of " + all + " proven algorithms"));
    EXPECT_THAT(document("docs/features.md"),
                HasSubstr(all + " algorithms for 11 operations, " + std::to_string(in_memory) +
                          " of them in memory that ranks of a host share and " +
                          std::to_string(two_level) + " in two levels"));
}

TEST(Registry, has_only_algorithms_that_the_documents_list) {
    const std::string listed = document("docs/collectives.md");
    for (const Algorithm& algorithm : algorithms())
        EXPECT_THAT(listed, HasSubstr("| `" + std::string(algorithm.name) + "` |"));
}

TEST(Chunks, spread_the_remainder_over_the_first_ranks) {
    const Chunks chunks = Chunks::even(11, 4);
    EXPECT_EQ(chunks.count(0), 3U);
    EXPECT_EQ(chunks.count(2), 3U);
    EXPECT_EQ(chunks.count(3), 2U);
    EXPECT_EQ(chunks.offset(3), 9U);
    EXPECT_EQ(chunks.total(), 11U);
    EXPECT_EQ(chunks.largest(), 3U);
}

TEST(Chunks, accept_any_counts) {
    const Chunks chunks = Chunks::of(std::vector<std::uint64_t>{4, 0, 7});
    EXPECT_EQ(chunks.world(), 3U);
    EXPECT_EQ(chunks.offset(2), 4U);
    EXPECT_EQ(chunks.count(1), 0U);
    EXPECT_EQ(chunks.total(), 11U);
    EXPECT_EQ(chunks.largest(), 7U);
}

}  // namespace
}  // namespace nexar::schedule
