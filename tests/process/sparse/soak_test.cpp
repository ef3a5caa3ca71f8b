#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "process/sparse/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

class SparseSoak : public ::testing::TestWithParam<SparseShape> {};

TEST_P(SparseSoak, every_operation_works) {
    expect_every_operation_works(GetParam(), test_seed(1));
}

std::vector<SparseShape> all_shapes() {
    std::vector<SparseShape> shapes;
    for (const char* topology : {"k_regular:2", "k_regular:4", "hypercube"}) {
        for (const int world : {5, 8, 13, 16}) {
            shapes.push_back({.world = world, .topology = topology});
        }
    }
    return shapes;
}

INSTANTIATE_TEST_SUITE_P(Topology, SparseSoak, ::testing::ValuesIn(all_shapes()),
                         [](const auto& shape) {
                             std::string text =
                                 shape.param.topology + "_of_" + std::to_string(shape.param.world);
                             std::ranges::replace(text, ':', '_');
                             return text;
                         });

/// NEXAR_TEST_SEED is the first seed, NEXAR_SOAK_RUNS the number of runs.
TEST(SparseRelaySoak, a_relay_that_is_killed_pauses_a_transfer_for_less_than_a_second) {
    const char* const given = std::getenv("NEXAR_SOAK_RUNS");
    const std::uint64_t runs = given == nullptr ? 50 : std::strtoull(given, nullptr, 10);
    const std::uint64_t first = test_seed(1);
    double longest = 0;
    for (std::uint64_t seed = first; seed < first + runs; ++seed) {
        const SparseShape shape{.world = 8,
                                .topology = seed % 2 == 0 ? "k_regular:4" : "hypercube",
                                .budget = seed % 4 < 2 ? "500ms" : "10s"};
        const double pause = pause_after_relay_is_killed(shape, seed);
        EXPECT_LT(pause, 1) << "seed " << seed;
        longest = std::max(longest, pause);
    }
    std::printf("%llu transfers; the longest pause was %.0f ms\n",
                static_cast<unsigned long long>(runs), longest * 1e3);
}

}  // namespace
}  // namespace nexar::testing
