#include "run/launcher_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "run/part_messages.hpp"

namespace nexar::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr TimePoint kLineStart{100s};

std::vector<int> signals_in(const std::vector<ToPart>& orders) {
    std::vector<int> signals;
    for (const ToPart& order : orders) signals.push_back(std::get<PassOn>(order).signal);
    return signals;
}

TEST(LauncherLineTest, decodes_signals_however_the_input_is_split) {
    const std::string all = encode(ToPart(PassOn{.signal = SIGUSR1})) + "nonsense\n" +
                            encode(ToPart(Alive{})) + encode(ToPart(PassOn{.signal = SIGTERM}));
    for (std::size_t cut = 1; cut < all.size(); ++cut) {
        LauncherLine line(15s, kLineStart);
        auto orders = line.take(kLineStart, all.substr(0, cut));
        for (ToPart& order : line.take(kLineStart, all.substr(cut))) {
            orders.push_back(std::move(order));
        }
        EXPECT_THAT(signals_in(orders), ElementsAre(SIGUSR1, SIGTERM)) << cut;
    }
}

TEST(LauncherLineTest, decodes_restarts_in_the_order_of_the_input) {
    LauncherLine line(15s, kLineStart);
    const auto orders = line.take(
        kLineStart, encode(ToPart(Restart{.rank = 3, .number = 2, .join = "nexar1.hunter2"})) +
                        encode(ToPart(Settle{})));
    ASSERT_EQ(orders.size(), 2U);
    EXPECT_EQ(std::get<Restart>(orders[0]).rank, 3U);
    EXPECT_EQ(std::get<Restart>(orders[0]).number, 2U);
    EXPECT_EQ(std::get<Restart>(orders[0]).join, "nexar1.hunter2");
    EXPECT_TRUE(std::holds_alternative<Settle>(orders[1]));
}

TEST(LauncherLineTest, silent_launcher_is_lost) {
    LauncherLine line(15s, kLineStart);
    EXPECT_EQ(line.deadline(), kLineStart + 15s);
    EXPECT_THAT(line.take(kLineStart + 10s, "alive\n"), IsEmpty());
    EXPECT_FALSE(line.lost(kLineStart + 25s - 1ns));
    EXPECT_TRUE(line.lost(kLineStart + 25s));
    line.hang_up();
    EXPECT_FALSE(line.deadline());
    EXPECT_TRUE(line.lost(kLineStart));
}

TEST(LauncherLineTest, end_of_input_and_an_endless_line_close_it) {
    LauncherLine ended(15s, kLineStart);
    EXPECT_THAT(ended.take(kLineStart, ""), IsEmpty());
    EXPECT_FALSE(ended.is_open());
    EXPECT_TRUE(ended.lost(kLineStart));
    LauncherLine endless(15s, kLineStart);
    for (int i = 0; i < 10; ++i) endless.take(kLineStart, std::string(1000, 'x'));
    EXPECT_FALSE(endless.is_open());
}

TEST(LauncherLineTest, stopped_launcher_may_be_silent_until_it_continues) {
    LauncherLine line(15s, kLineStart);
    EXPECT_THAT(signals_in(line.take(kLineStart, encode(ToPart(PassOn{.signal = SIGTSTP})))),
                ElementsAre(SIGTSTP));
    EXPECT_FALSE(line.deadline());
    EXPECT_FALSE(line.lost(kLineStart + 1h));
    EXPECT_THAT(signals_in(line.take(kLineStart + 1h, encode(ToPart(PassOn{.signal = SIGCONT})))),
                ElementsAre(SIGCONT));
    EXPECT_EQ(line.deadline(), kLineStart + 1h + 15s);
}

}  // namespace
}  // namespace nexar::run
