#include "runtime/progress_options.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "base/settings.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

Progress::Options options_with(const NodeOptions& code, const ConfigSources& others = {}) {
    ConfigSources sources = others;
    sources.code = progress_settings(code);
    const Config config = Config::resolve(kSettings, sources).value();
    return progress_options(with_progress_settings(code, config));
}

TEST(progress_options, defaults_are_equal_with_and_without_settings) {
    const Progress::Options read = options_with({});
    EXPECT_EQ(read.spin, Progress::kDefaultSpin);
    EXPECT_EQ(read.waiting, Waiting::automatic);
    EXPECT_EQ(read.drive, Progress::Drive::background);
    const Progress::Options not_read = progress_options({});
    EXPECT_EQ(not_read.spin.value_or(Progress::kDefaultSpin), Progress::kDefaultSpin);
    EXPECT_EQ(not_read.waiting, Waiting::automatic);
}

TEST(progress_options, settings_take_effect) {
    const std::array<std::pair<const char*, Waiting>, 3> names{
        {{"auto", Waiting::automatic}, {"spin", Waiting::spin}, {"sleep", Waiting::sleep}}};
    for (const auto& [name, waiting] : names) {
        const Progress::Options options =
            options_with({.progressing = Progressing::user_loop},
                         {.environment = {{"NEXAR_PROGRESS", name}, {"NEXAR_SPIN", "3us"}}});
        EXPECT_EQ(options.waiting, waiting);
        EXPECT_EQ(options.spin, 3us);
        EXPECT_EQ(options.drive, Progress::Drive::user_loop);
    }
}

TEST(progress_options, code_overrides_settings) {
    const Progress::Options options =
        options_with({.waiting = Waiting::automatic, .spin = 0ns},
                     {.environment = {{"NEXAR_PROGRESS", "spin"}, {"NEXAR_SPIN", "3us"}}});
    EXPECT_EQ(options.waiting, Waiting::automatic);
    EXPECT_EQ(options.spin, 0ns);
}

TEST(progress_options, a_budget_out_of_range_is_an_error) {
    for (const auto spin : {-1ns, std::chrono::nanoseconds(61min)}) {
        EXPECT_FALSE(Config::resolve(kSettings, {.code = progress_settings({.spin = spin})}));
    }
}

TEST(processes_on_host, counts_the_nodes_of_one_process_once) {
    const std::array<std::uint32_t, 7> machines{4, 9, 4, 4, 7, 9, 4};
    const schedule::Links links(machines);
    EXPECT_EQ(processes_on_host(links, 7, 0, 1), 4U);
    EXPECT_EQ(processes_on_host(links, 7, 5, 1), 2U);
    EXPECT_EQ(processes_on_host(links, 7, 4, 1), 1U);
    EXPECT_EQ(processes_on_host(links, 7, 0, 3), 2U);
    EXPECT_EQ(processes_on_host(links, 7, 0, 4), 1U);
    EXPECT_EQ(processes_on_host(schedule::Links(), 7, 3, 1), 1U);
}

}  // namespace
}  // namespace nexar::runtime
