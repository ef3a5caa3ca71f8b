// A node fails in the middle of random traffic, and the others evict it.

#include "eviction.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(EvictionSim, operations_end_once_and_unrelated_ones_are_not_disturbed) {
    const std::uint64_t first = test_seed(1);
    std::size_t failed = 0;
    std::size_t operations = 0;
    for (std::uint64_t seed = first; seed < first + 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Eviction eviction(seed, 2 + seed % 4);
        ASSERT_NO_FATAL_FAILURE(eviction.run(300));
        eviction.check();
        eviction.close();
        failed += eviction.failed();
        operations += eviction.operations();
        if (::testing::Test::HasFailure()) return;
    }
    // The eviction must have ended something, and not everything.
    EXPECT_GT(failed, 0U);
    EXPECT_LT(failed, operations);
    EXPECT_GT(operations, 1000U);
}

TEST(EvictionSim, runs_with_the_same_seed_are_equal) {
    const std::uint64_t seed = test_seed(7);
    std::optional<std::uint64_t> trace;
    for (int i = 0; i < 2; ++i) {
        Eviction eviction(seed, 4);
        ASSERT_NO_FATAL_FAILURE(eviction.run(100));
        eviction.close();
        if (!trace) trace = eviction.trace();
        EXPECT_EQ(*trace, eviction.trace());
    }
}

}  // namespace
}  // namespace nexar::testing
