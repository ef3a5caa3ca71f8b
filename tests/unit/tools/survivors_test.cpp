#include "run/survivors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nexar::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr TimePoint kBegin{100s};

Survivors continuing(std::uint32_t slots, std::uint32_t min = 1) {
    return {{.mode = OnFailure::go_on, .min = min}, slots};
}

Survivors restarting(std::uint32_t slots, std::uint32_t min = 1, std::uint32_t times = 3) {
    return {{.mode = OnFailure::restart, .min = min, .max_restarts = times}, slots};
}

TEST(SurvivorsTest, others_continue_after_a_failure) {
    Survivors run = continuing(4);
    const auto verdict = run.on_failed(kBegin, 2);
    EXPECT_TRUE(verdict.goes_on);
    EXPECT_EQ(verdict.text, "; the other 3 processes continue");
    EXPECT_FALSE(run.runs(2));
    EXPECT_TRUE(run.runs(3));
    EXPECT_FALSE(run.next_deadline()) << "nothing is restarted";
    run.on_failed(kBegin, 0);
    EXPECT_EQ(run.on_failed(kBegin, 3).text, "; the other process continues");
}

TEST(SurvivorsTest, run_ends_with_the_last_running_process) {
    for (Survivors run : {continuing(2), restarting(2)}) {
        EXPECT_TRUE(run.on_failed(kBegin, 0).goes_on);
        EXPECT_FALSE(run.on_failed(kBegin, 1).goes_on) << "nobody is left to join";
        EXPECT_FALSE(run.next_deadline());
        EXPECT_TRUE(run.settled());
    }
}

TEST(SurvivorsTest, run_ends_if_fewer_than_min_are_left) {
    Survivors run = continuing(4, 3);
    EXPECT_TRUE(run.on_failed(kBegin, 1).goes_on);
    const auto verdict = run.on_failed(kBegin, 2);
    EXPECT_FALSE(verdict.goes_on);
    EXPECT_EQ(verdict.text, "; 2 processes left, fewer than --min 3");
}

TEST(SurvivorsTest, processes_that_succeeded_count_towards_min) {
    Survivors run = continuing(4, 3);
    EXPECT_FALSE(run.on_succeeded(0));
    EXPECT_FALSE(run.on_succeeded(1));
    EXPECT_TRUE(run.on_failed(kBegin, 2).goes_on) << "2 have succeeded and 1 is running";
    EXPECT_FALSE(run.on_succeeded(3)) << "3 have succeeded";
    EXPECT_TRUE(run.settled());
}

TEST(SurvivorsTest, failure_after_all_successes_fails_the_run) {
    Survivors run = continuing(3);
    EXPECT_FALSE(run.on_succeeded(0));
    EXPECT_FALSE(run.on_succeeded(1));
    EXPECT_FALSE(run.on_failed(kBegin, 2).goes_on);
}

TEST(SurvivorsTest, failed_process_is_restarted_after_growing_pauses) {
    Survivors run = restarting(2, 1, 10);
    TimePoint now = kBegin;
    for (const Duration pause :
         {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms, 5000ms, 5000ms}) {
        const auto verdict = run.on_failed(now, 1);
        EXPECT_TRUE(verdict.goes_on);
        ASSERT_EQ(run.next_deadline(), now + pause);
        EXPECT_THAT(run.take_due(now + pause - 1ns), IsEmpty());
        EXPECT_FALSE(run.runs(1));
        now += pause;
        EXPECT_EQ(run.take_due(now).size(), 1U);
        EXPECT_TRUE(run.runs(1));
        EXPECT_FALSE(run.next_deadline());
    }
    const auto last = run.on_failed(now, 1);
    EXPECT_TRUE(last.goes_on);
    EXPECT_EQ(last.text,
              " and is not restarted again (--max-restarts 10); the other process continues");
    EXPECT_FALSE(run.next_deadline());
}

TEST(SurvivorsTest, names_and_numbers_follow_the_restarts) {
    Survivors run = restarting(3);
    EXPECT_EQ(run.name(2), "rank 2");
    EXPECT_EQ(run.on_failed(kBegin, 2).text, "; process 2.1 starts in 100ms");
    EXPECT_THAT(run.take_due(kBegin + 1s), ElementsAre(Survivors::Restart{.slot = 2, .number = 1}));
    EXPECT_EQ(run.name(2), "process 2.1");
    EXPECT_EQ(run.on_failed(kBegin, 2).text, "; process 2.2 starts in 200ms");
    EXPECT_TRUE(run.on_failed(kBegin, 0).goes_on);
    EXPECT_THAT(run.take_due(kBegin + 1s), ElementsAre(Survivors::Restart{.slot = 0, .number = 1},
                                                       Survivors::Restart{.slot = 2, .number = 2}));
}

TEST(SurvivorsTest, pending_restarts_count_towards_min_until_they_are_used_up) {
    Survivors run = restarting(3, 3, 1);
    EXPECT_TRUE(run.on_failed(kBegin, 1).goes_on);
    EXPECT_EQ(run.take_due(kBegin + 1s).size(), 1U);
    const auto verdict = run.on_failed(kBegin + 1s, 1);
    EXPECT_FALSE(verdict.goes_on);
    EXPECT_EQ(verdict.text, "; 2 processes left, fewer than --min 3");
}

TEST(SurvivorsTest, pending_restart_is_forgotten_when_the_others_have_finished) {
    Survivors run = restarting(2);
    EXPECT_TRUE(run.on_failed(kBegin, 1).goes_on);
    EXPECT_FALSE(run.settled());
    EXPECT_FALSE(run.on_succeeded(0)) << "enough for --min 1";
    EXPECT_TRUE(run.settled());
    EXPECT_THAT(run.take_due(kBegin + 1h), IsEmpty());

    Survivors strict = restarting(2, 2);
    EXPECT_TRUE(strict.on_failed(kBegin, 1).goes_on);
    EXPECT_EQ(strict.on_succeeded(0).value_or(""),
              "only 1 process exited with code 0, fewer than --min 2");
}

TEST(SurvivorsTest, replacement_that_finds_nobody_to_join_does_not_fail_the_run) {
    Survivors run = restarting(3);
    EXPECT_TRUE(run.on_failed(kBegin, 2).goes_on);
    EXPECT_EQ(run.take_due(kBegin + 1s).size(), 1U);
    EXPECT_FALSE(run.on_succeeded(0));
    EXPECT_FALSE(run.on_succeeded(1));
    const auto verdict = run.on_failed(kBegin + 1min, 2);
    EXPECT_TRUE(verdict.goes_on);
    EXPECT_THAT(verdict.text, HasSubstr("the other processes had finished before it"));
    EXPECT_TRUE(run.settled());

    Survivors early = restarting(3);
    EXPECT_FALSE(early.on_succeeded(0)) << "before the restart";
    EXPECT_TRUE(early.on_failed(kBegin, 2).goes_on);
    EXPECT_EQ(early.take_due(kBegin + 1s).size(), 1U);
    EXPECT_TRUE(early.on_failed(kBegin + 2s, 1).goes_on);
    EXPECT_FALSE(early.on_failed(kBegin + 2s, 2).goes_on) << "nobody finished in its time";
}

TEST(SurvivorsTest, lost_host_takes_its_processes_along) {
    Survivors run = restarting(4, 2);
    EXPECT_TRUE(run.on_failed(kBegin, 2).goes_on);
    const auto verdict = run.on_lost(2, 2);
    EXPECT_TRUE(verdict.goes_on);
    EXPECT_EQ(verdict.text, "; the other 2 processes continue");
    EXPECT_FALSE(run.next_deadline()) << "a lost host restarts nothing";
    EXPECT_TRUE(run.on_lost(2, 2).goes_on) << "nothing ran there any more";
    EXPECT_FALSE(run.on_lost(0, 1).goes_on);
}

TEST(SurvivorsTest, restarts_stop_on_request) {
    Survivors run = restarting(3);
    EXPECT_TRUE(run.on_failed(kBegin, 2).goes_on);
    run.stop_restarts();
    EXPECT_FALSE(run.next_deadline());
    EXPECT_THAT(run.take_due(kBegin + 1h), IsEmpty());
    EXPECT_TRUE(run.on_failed(kBegin, 1).goes_on);
    EXPECT_FALSE(run.next_deadline());
}

}  // namespace
}  // namespace nexar::run
