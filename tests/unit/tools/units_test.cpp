#include "run/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace nexar::run {
namespace {

TEST(UnitsTest, prefix_names_the_restart) {
    EXPECT_EQ(prefix_after("[2] ", 0), "[2] ");
    EXPECT_EQ(prefix_after("[2] ", 1), "[2.1] ");
    EXPECT_EQ(prefix_after("[12] ", 10), "[12.10] ");
    EXPECT_EQ(prefix_after("\x1b[36m[2]\x1b[0m ", 3), "\x1b[36m[2.3]\x1b[0m ");
    EXPECT_EQ(prefix_after("", 1), "");
}

TEST(UnitsTest, only_ranks_of_a_run_that_restarts_them_are_restarted) {
    Part part{.world = 2, .count = 2, .command = {"./program"}};
    for (const OnFailure mode : {OnFailure::end, OnFailure::go_on, OnFailure::restart}) {
        part.on_failure = mode;
        const auto units = rank_units(part);
        ASSERT_EQ(units.size(), 2U);
        EXPECT_EQ(units[1].restarts, mode == OnFailure::restart);
        EXPECT_EQ(units[1].ranks, 1U);
    }
    EXPECT_EQ(host_unit({.host = "b", .first_rank = 2, .count = 3}, part, "nexar").ranks, 3U);
}

TEST(UnitsTest, number_of_the_restart_is_not_inherited) {
    ASSERT_EQ(::setenv("NEXAR_RESTARTED", "7", 1), 0);
    const auto environment = environment_with({});
    ::unsetenv("NEXAR_RESTARTED");
    EXPECT_TRUE(std::ranges::none_of(environment, [](const std::string& variable) {
        return variable.starts_with("NEXAR_RESTARTED");
    }));
}

}  // namespace
}  // namespace nexar::run
