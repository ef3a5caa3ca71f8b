#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/chaos_runs.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

/// NEXAR_TEST_SEED is the first seed, NEXAR_SOAK_RUNS the number of seeds.
TEST(ChaosSoak, keeps_its_promises) {
    const char* const given = std::getenv("NEXAR_SOAK_RUNS");
    expect_promises_kept(test_seed(1), given == nullptr ? 2000 : std::strtoull(given, nullptr, 10));
}

/// Sparse clusters in which a promise was once broken.
class KnownSparseSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KnownSparseSeed, keeps_its_promises) {
    set_log_level(LogLevel::off);
    const chaos::RunOptions options{.seed = GetParam(), .topology = "k_regular:4"};
    const chaos::RunResult result = chaos::run(options);
    EXPECT_EQ(result.rule, "") << chaos::summary_of(options, result);
}

INSTANTIATE_TEST_SUITE_P(
    ChaosSoak, KnownSparseSeed,
    ::testing::Values(30401551,   // a member was evicted whose last neighbour had lost the path
                      30404129,   // a link stayed on a path that was never validated
                      30400277),  // nobody sent anything over a tunnel that had lost all probes
    [](const auto& one) { return std::to_string(one.param); });

}  // namespace
}  // namespace nexar::testing
