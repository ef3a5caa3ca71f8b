#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "agreement_model.hpp"
#include "engine/planted_bug.hpp"

// NEXAR_TEST_SEED replays one seed, NEXAR_TEST_SEEDS sets their number.
namespace nexar::testing {
namespace {

using engine::PlantedBug;

std::optional<std::uint64_t> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

/// The first seed that fails.
std::optional<std::string> first_failure(std::uint64_t seeds, AgreementModel::Counts& counts) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        AgreementModel model(seed);
        const auto failure = model.run();
        counts += model.counts();
        if (failure) return failure;
    }
    return std::nullopt;
}

TEST(AgreementModel, ranks_return_equal_values_whatever_fails) {
    if (const auto seed = number_in("NEXAR_TEST_SEED")) {
        AgreementModel model(*seed);
        model.trace = true;
        const auto failure = model.run();
        EXPECT_FALSE(failure) << *failure;
        return;
    }
    const std::uint64_t seeds = number_in("NEXAR_TEST_SEEDS").value_or(4000);
    AgreementModel::Counts counts;
    const auto failure = first_failure(seeds, counts);
    ASSERT_FALSE(failure) << *failure;
    std::cout << seeds << " seeds: " << counts.returned << " returned, " << counts.crashes
              << " crashes, " << counts.views << " views, " << counts.shrunk << " shrunk, "
              << counts.differences << " differences, " << counts.timeouts << " timeouts, "
              << counts.resumed << " resumed\n";
    // The runs are not trivial.
    EXPECT_GT(counts.returned, seeds);
    EXPECT_GT(counts.crashes, seeds);
    EXPECT_GT(counts.views, seeds);
    EXPECT_GT(counts.shrunk, seeds / 10);
    EXPECT_GT(counts.differences, seeds / 100);
    EXPECT_GT(counts.timeouts, seeds / 100);
    EXPECT_GT(counts.resumed, seeds / 100);
}

TEST(AgreementModel, runs_with_the_same_seed_are_equal) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        AgreementModel first(seed);
        AgreementModel second(seed);
        EXPECT_FALSE(first.run());
        EXPECT_FALSE(second.run());
        EXPECT_EQ(first.trace_hash(), second.trace_hash()) << "seed " << seed;
    }
}

class PlantedBugs : public ::testing::TestWithParam<PlantedBug> {
public:
    ~PlantedBugs() override { engine::planted_bug = PlantedBug::none; }
};

TEST_P(PlantedBugs, are_found) {
    engine::planted_bug = GetParam();
    AgreementModel::Counts counts;
    const auto failure = first_failure(4000, counts);
    ASSERT_TRUE(failure);
    std::cout << *failure << "\n";
}

std::string bug_name(const ::testing::TestParamInfo<PlantedBug>& bug) {
    constexpr std::array kNames{
        "none",     "decide_early", "ignore_stored", "old_epoch",           "forget",
        "unstored", "lost_locally", "skip_states",   "silent_after_return", "silent_in_new_view"};
    return kNames.at(static_cast<std::size_t>(bug.param));
}

INSTANTIATE_TEST_SUITE_P(AgreementModel, PlantedBugs,
                         ::testing::Values(PlantedBug::decide_early, PlantedBug::ignore_stored,
                                           PlantedBug::act_in_old_epoch,
                                           PlantedBug::forget_decisions,
                                           PlantedBug::acknowledge_only, PlantedBug::lost_locally,
                                           PlantedBug::skip_states, PlantedBug::silent_after_return,
                                           PlantedBug::silent_in_new_view),
                         bug_name);

}  // namespace
}  // namespace nexar::testing
