#include "run/early_ends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace nexar::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr TimePoint kStart{100s};
constexpr Ended kDone{};

TEST(EarlyEndsTest, reports_nothing_when_ranks_end_at_almost_the_same_time) {
    EarlyEnds ends(3);
    ends.on_ended(kStart, 1, kDone);
    ends.on_time(kStart + 1s);
    ends.on_ended(kStart + 1s, 0, kDone);
    ends.on_ended(kStart + 1900ms, 2, kDone);
    EXPECT_FALSE(ends.next_deadline());
    ends.on_time(kStart + 1h);
    EXPECT_THAT(ends.take_lines(), IsEmpty());
}

TEST(EarlyEndsTest, names_the_exited_and_the_running_ranks) {
    EarlyEnds ends(5);
    ends.on_ended(kStart, 2, kDone);
    ASSERT_EQ(ends.next_deadline(), kStart + 2s);
    ends.on_time(kStart + 2s - 1ns);
    EXPECT_THAT(ends.take_lines(), IsEmpty());
    ends.on_time(kStart + 2s);
    EXPECT_THAT(
        ends.take_lines(),
        ElementsAre("rank 2 exited with code 0 while ranks 0, 1, 3 and 4 are still running"));
    EXPECT_FALSE(ends.next_deadline()) << "it is reported once";
}

TEST(EarlyEndsTest, reports_less_often_when_ranks_end_one_after_the_other) {
    EarlyEnds ends(4);
    ends.on_ended(kStart, 3, kDone);
    ends.on_time(kStart + 2s);
    EXPECT_THAT(ends.take_lines(),
                ElementsAre("rank 3 exited with code 0 while ranks 0 to 2 are still running"));
    ends.on_ended(kStart + 3s, 1, kDone);
    ends.on_ended(kStart + 4s, 0, kDone);
    ASSERT_EQ(ends.next_deadline(), kStart + 7s);
    ends.on_time(kStart + 7s);
    EXPECT_THAT(ends.take_lines(),
                ElementsAre("ranks 0 and 1 exited with code 0 while rank 2 is still running"));
}

TEST(EarlyEndsTest, names_the_exited_ranks_at_once_when_another_rank_fails) {
    EarlyEnds ends(4);
    ends.on_ended(kStart, 2, kDone);
    ends.on_ended(kStart, 3, kDone);
    ends.on_ended(kStart, 1, {.by_signal = true, .number = SIGSEGV});
    ends.on_run_ending(true);
    EXPECT_THAT(ends.take_lines(), ElementsAre("ranks 2 and 3 had exited with code 0 before that"));
    ends.on_ended(kStart, 0, kDone);
    ends.on_run_ending(true);
    ends.on_time(kStart + 1h);
    EXPECT_THAT(ends.take_lines(), IsEmpty());
}

TEST(EarlyEndsTest,
     names_the_exited_ranks_even_if_the_last_rank_ends_together_with_the_failed_one) {
    EarlyEnds ends(3);
    ends.on_ended(kStart, 1, kDone);
    ends.on_ended(kStart, 2, {.by_signal = false, .number = 1});
    ends.on_ended(kStart, 0, kDone);
    ends.on_run_ending(true);
    EXPECT_THAT(ends.take_lines(), ElementsAre("rank 1 had exited with code 0 before that"));
}

TEST(EarlyEndsTest, reports_nothing_when_the_user_ends_the_run) {
    EarlyEnds ends(2);
    ends.on_ended(kStart, 0, kDone);
    ends.on_run_ending(false);
    ends.on_time(kStart + 1h);
    EXPECT_THAT(ends.take_lines(), IsEmpty());
    EXPECT_FALSE(ends.next_deadline());
}

TEST(EarlyEndsTest, ignores_unknown_ranks_and_repeated_events) {
    EarlyEnds ends(2);
    ends.on_ended(kStart, 7, kDone);
    EXPECT_FALSE(ends.next_deadline());
    ends.on_ended(kStart, 1, kDone);
    ends.on_ended(kStart, 1, kDone);
    ends.on_time(kStart + 2s);
    EXPECT_THAT(ends.take_lines(),
                ElementsAre("rank 1 exited with code 0 while rank 0 is still running"));
}

}  // namespace
}  // namespace nexar::run
