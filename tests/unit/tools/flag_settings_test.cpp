#include "run/flag_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/settings.hpp"

namespace nexar::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

NamedSettings added(std::uint32_t ranks, ConfigSources sources = {}) {
    NamedSettings settings;
    add_sharing(settings, Config::resolve(kSettings, sources).value(), ranks);
    return settings;
}

TEST(FlagSettings, tells_ranks_that_they_share_processors) {
    const std::uint32_t cores = std::thread::hardware_concurrency();
    ASSERT_GT(cores, 0U);
    EXPECT_THAT(added(1), IsEmpty());
    EXPECT_THAT(added(cores), IsEmpty());
    EXPECT_THAT(added(2 * cores), ElementsAre(Pair("fabric_ranks_per_core", "2")));
    EXPECT_THAT(added(3 * cores), ElementsAre(Pair("fabric_ranks_per_core", "3")));
    for (const std::uint32_t ranks : {cores + 1, 7 * cores + 3, 100'000U}) {
        // The added value is valid for the setting.
        const NamedSettings settings = added(ranks);
        ASSERT_EQ(settings.size(), 1U);
        const auto config = Config::resolve(
            kSettings, {.code = {{settings.front().first, settings.front().second}}});
        EXPECT_TRUE(config.has_value()) << settings.front().second;
    }
}

TEST(FlagSettings, does_not_override_the_value_that_the_user_set) {
    const std::uint32_t ranks = 2 * std::thread::hardware_concurrency();
    EXPECT_THAT(added(ranks, {.environment = {{"NEXAR_FABRIC_RANKS_PER_CORE", "1"}}}), IsEmpty());
    EXPECT_THAT(added(ranks, {.code = {{"fabric_ranks_per_core", "7"}}}), IsEmpty());
}

}  // namespace
}  // namespace nexar::run
