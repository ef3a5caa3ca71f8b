#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "chaos/run.hpp"
#include "sim/chaos_runs.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(Chaos, one_seed_twice) {
    set_log_level(LogLevel::off);
    const chaos::RunOptions options{.seed = test_seed(2)};
    const chaos::RunResult first = chaos::run(options);
    const chaos::RunResult second = chaos::run(options);
    EXPECT_EQ(first.rule, "") << first.failure;
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
    EXPECT_GE(first.elapsed, std::chrono::seconds(60));
}

TEST(Chaos, another_seed_is_another_run) {
    set_log_level(LogLevel::off);
    EXPECT_NE(chaos::run({.seed = 4, .nodes = 2}).trace, chaos::run({.seed = 5, .nodes = 2}).trace);
}

TEST(Chaos, keeps_its_promises) {
    expect_promises_kept(test_seed(1), 18);
}

/// Runs in which a promise was once broken.
class KnownSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KnownSeed, keeps_its_promises) {
    set_log_level(LogLevel::off);
    const chaos::RunOptions options{.seed = GetParam()};
    const chaos::RunResult result = chaos::run(options);
    EXPECT_EQ(result.rule, "") << chaos::summary_of(options, result);
}

INSTANTIATE_TEST_SUITE_P(
    Chaos, KnownSeed,
    ::testing::Values(140120,    // a link stayed stalled after a cut
                      200046,    // the only member with a world was evicted
                      400148,    // the seed used an epoch again after all members had left
                      500001,    // a decision was not sent to a rank that was silent before
                      760093,    // a seed that was restarted kept an old vote with a new view
                      6500527,   // a rank that had missed views waited too long for dead joiners
                      20000970,  // the last member left, and with it one that was cut off
                      20401325,  // a link that one direction was cut off from went on too late
                      20001136),
    [](const auto& one) { return std::to_string(one.param); });

TEST(Chaos, sixteen_nodes_keep_their_promises) {
    set_log_level(LogLevel::off);
    const chaos::RunOptions options{.seed = test_seed(1), .nodes = 16};
    const chaos::RunResult result = chaos::run(options);
    EXPECT_EQ(result.rule, "") << chaos::summary_of(options, result);
}

}  // namespace
}  // namespace nexar::testing
