#include "run/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace nexar::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr TimePoint kPolicyStart{100s};
constexpr Order kTermUnits{.kind = Order::Kind::signal_units, .signal = SIGTERM};
constexpr Order kTermStrays{.kind = Order::Kind::signal_strays, .signal = SIGTERM};
constexpr Order kKillAll{.kind = Order::Kind::kill_all, .signal = SIGKILL};

Ended exit_code(int number) {
    return {.number = number};
}

Ended signal(int number) {
    return {.by_signal = true, .number = number};
}

Policy three_ranks() {
    return Policy({.units = {"rank 0", "rank 1", "rank 2"}, .grace = 10s, .linger = 1s});
}

TEST(PolicyTest, succeeds_when_all_ranks_succeed) {
    Policy policy = three_ranks();
    policy.on_ended(kPolicyStart, 1, exit_code(0));
    policy.on_ended(kPolicyStart, 0, exit_code(0));
    policy.on_alone();
    EXPECT_FALSE(policy.finished()) << "rank 2 is still running";
    policy.on_ended(kPolicyStart, 2, exit_code(0));
    EXPECT_FALSE(policy.finished());
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
    EXPECT_EQ(policy.exit_code(), 0);
    EXPECT_THAT(policy.take_orders(), IsEmpty());
    EXPECT_THAT(policy.take_lines(), IsEmpty());
    EXPECT_FALSE(policy.next_deadline());
}

TEST(PolicyTest, abort_explains_the_failures_that_it_causes) {
    for (const auto& [code, status] : {std::pair(3, 3), std::pair(0, 1), std::pair(256, 1)}) {
        Policy policy = three_ranks();
        policy.on_aborted(
            {Errc::aborted, "rank 2 aborted the program with code 3: why", {.abort_code = code}});
        EXPECT_TRUE(policy.undisturbed()) << "the ranks may continue";
        policy.on_ended(kPolicyStart, 1, signal(SIGABRT));
        EXPECT_THAT(policy.take_orders(), ElementsAre(kTermUnits));
        policy.on_ended(kPolicyStart, 0, signal(SIGABRT));
        policy.on_ended(kPolicyStart, 2, signal(SIGTERM));
        EXPECT_THAT(policy.take_lines(),
                    ElementsAre("rank 2 aborted the program with code 3: why; the others get "
                                "SIGTERM, and SIGKILL after 10s"));
        EXPECT_EQ(policy.exit_code(), status);
        EXPECT_TRUE(policy.failed());
        EXPECT_FALSE(policy.failed_by_itself());
    }
}

TEST(PolicyTest, abort_without_a_failing_rank_is_not_a_failure) {
    Policy policy = three_ranks();
    policy.on_aborted({Errc::aborted, "why", {.abort_code = 3}});
    for (std::size_t unit = 0; unit < 3; ++unit) policy.on_ended(kPolicyStart, unit, exit_code(0));
    EXPECT_EQ(policy.exit_code(), 0);
    EXPECT_THAT(policy.take_lines(), IsEmpty());
}

TEST(PolicyTest, first_failure_ends_the_run_and_determines_the_exit_code) {
    Policy policy = three_ranks();
    policy.on_ended(kPolicyStart, 1, signal(SIGSEGV));
    EXPECT_THAT(policy.take_orders(), ElementsAre(kTermUnits));
    EXPECT_THAT(policy.take_lines(),
                ElementsAre("rank 1 was killed by signal 11 (SIGSEGV); the others get SIGTERM, and "
                            "SIGKILL after 10s"));
    policy.on_ended(kPolicyStart + 1s, 0, signal(SIGTERM));
    policy.on_ended(kPolicyStart + 1s, 2, exit_code(1));
    EXPECT_THAT(policy.take_lines(), IsEmpty()) << "the consequences need no line";
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
    EXPECT_EQ(policy.exit_code(), 139);
}

TEST(PolicyTest, crash_after_the_first_failure_is_reported_too) {
    Policy policy = three_ranks();
    policy.on_ended(kPolicyStart, 1, exit_code(2));
    (void)policy.take_lines();
    policy.on_ended(kPolicyStart, 0, signal(SIGABRT));
    EXPECT_THAT(policy.take_lines(), ElementsAre("rank 0 was killed by signal 6 (SIGABRT)"));
    EXPECT_EQ(policy.exit_code(), 2);
}

TEST(PolicyTest, kills_ranks_that_outlive_the_grace_period) {
    Policy policy = three_ranks();
    policy.on_ended(kPolicyStart, 1, exit_code(2));
    (void)policy.take_orders();
    (void)policy.take_lines();
    ASSERT_EQ(policy.next_deadline(), kPolicyStart + 10s);
    policy.on_time(kPolicyStart + 10s - 1ns);
    EXPECT_THAT(policy.take_orders(), IsEmpty());
    policy.on_ended(kPolicyStart + 5s, 2, signal(SIGTERM));
    policy.on_time(kPolicyStart + 10s);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kKillAll));
    EXPECT_THAT(policy.take_lines(), ElementsAre("rank 0 did not end within 10s; sending SIGKILL"));
    policy.on_ended(kPolicyStart + 11s, 0, signal(SIGKILL));
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
    EXPECT_EQ(policy.exit_code(), 2);
}

TEST(PolicyTest, forwards_repeated_signals_that_do_not_terminate) {
    Policy policy = three_ranks();
    for (int i = 0; i < 3; ++i) {
        policy.on_signal(kPolicyStart, SIGUSR1);
        EXPECT_THAT(policy.take_orders(),
                    ElementsAre(Order{.kind = Order::Kind::signal_units, .signal = SIGUSR1}));
    }
}

TEST(PolicyTest, sends_no_further_signal_within_the_grace_period_after_an_interrupt) {
    Policy policy = three_ranks();
    policy.on_signal(kPolicyStart, SIGINT);
    EXPECT_EQ(policy.next_deadline(), kPolicyStart + 10s);
    (void)policy.take_orders();
    policy.on_ended(kPolicyStart + 1s, 0, signal(SIGINT));
    EXPECT_THAT(policy.take_orders(), IsEmpty());
    EXPECT_EQ(policy.next_deadline(), kPolicyStart + 10s)
        << "the first rank that ends does not extend it";
    policy.on_ended(kPolicyStart + 1s, 1, signal(SIGINT));
    EXPECT_THAT(policy.take_lines(), ElementsAre("rank 0 was killed by signal 2 (SIGINT)"));
    policy.on_time(kPolicyStart + 10s);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kKillAll));
    EXPECT_EQ(policy.exit_code(), 130);
}

TEST(PolicyTest, kills_ranks_that_ignore_a_forwarded_signal_after_the_grace_period) {
    for (const int sent : {SIGTERM, SIGINT}) {
        Policy policy = three_ranks();
        policy.on_signal(kPolicyStart, sent);
        (void)policy.take_orders();
        policy.on_time(kPolicyStart + 10s - 1ns);
        EXPECT_THAT(policy.take_orders(), IsEmpty());
        policy.on_time(kPolicyStart + 10s);
        EXPECT_THAT(policy.take_orders(), ElementsAre(kKillAll));
        EXPECT_THAT(policy.take_lines(),
                    ElementsAre("rank 0, rank 1, rank 2 did not end within 10s; sending SIGKILL"));
        for (const std::size_t rank : {0U, 1U, 2U})
            policy.on_ended(kPolicyStart, rank, signal(SIGKILL));
        EXPECT_THAT(policy.take_lines(), IsEmpty());
        EXPECT_EQ(policy.exit_code(), 128 + sent);
    }
}

TEST(PolicyTest, ranks_may_continue_after_sighup_until_one_of_them_ends) {
    for (const int sent : {SIGHUP, SIGQUIT}) {
        Policy policy = three_ranks();
        policy.on_signal(kPolicyStart, sent);
        EXPECT_FALSE(policy.next_deadline());
        policy.on_ended(kPolicyStart + 1s, 0, exit_code(0));
        EXPECT_EQ(policy.next_deadline(), kPolicyStart + 11s);
    }
}

TEST(PolicyTest, kills_an_unreachable_unit_and_sends_sigterm_to_the_others) {
    Policy policy = three_ranks();
    policy.on_unreachable(kPolicyStart, 1, "the connection to host b is lost");
    EXPECT_THAT(policy.take_orders(),
                ElementsAre(kTermUnits,
                            Order{.kind = Order::Kind::kill_unit, .signal = SIGKILL, .unit = 1}));
    EXPECT_THAT(policy.take_lines(), ElementsAre(HasSubstr("to host b is lost; the others get")));
    policy.on_ended(kPolicyStart, 1, signal(SIGKILL));
    EXPECT_THAT(policy.take_lines(), IsEmpty());
    EXPECT_EQ(policy.exit_code(), 255);
}

TEST(PolicyTest, failures_and_terminating_signals_disturb_the_run) {
    Policy policy = three_ranks();
    policy.on_signal(kPolicyStart, SIGUSR1);
    policy.on_ended(kPolicyStart, 0, exit_code(0));
    EXPECT_TRUE(policy.undisturbed());
    EXPECT_FALSE(policy.failed());
    Policy failing = three_ranks();
    failing.on_failed(kPolicyStart, 2, 7, "rank 2 has vanished");
    EXPECT_THAT(failing.take_lines(), ElementsAre(HasSubstr("rank 2 has vanished; the")));
    EXPECT_FALSE(failing.undisturbed());
    EXPECT_TRUE(failing.failed());
    policy.on_signal(kPolicyStart, SIGTERM);
    EXPECT_FALSE(policy.undisturbed());
    EXPECT_FALSE(policy.failed());
}

TEST(PolicyTest, second_terminating_signal_kills_unless_it_is_sighup) {
    Policy policy = three_ranks();
    policy.on_signal(kPolicyStart, SIGTERM);
    policy.on_signal(kPolicyStart, SIGHUP);
    EXPECT_THAT(
        policy.take_orders(),
        ElementsAre(kTermUnits, Order{.kind = Order::Kind::signal_units, .signal = SIGHUP}));
    policy.on_signal(kPolicyStart, SIGINT);
    policy.on_signal(kPolicyStart, SIGINT);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kKillAll));
    EXPECT_THAT(policy.take_lines(), ElementsAre("received SIGINT again; killing all processes"));
    EXPECT_EQ(policy.exit_code(), 130);
}

TEST(PolicyTest, run_goes_on_without_a_unit_that_is_gone) {
    Policy policy = three_ranks();
    policy.on_gone(kPolicyStart, 1);
    policy.on_gone(kPolicyStart, 1);
    EXPECT_TRUE(policy.undisturbed());
    EXPECT_FALSE(policy.failed());
    policy.cut_off(2);
    EXPECT_THAT(policy.take_orders(),
                ElementsAre(Order{.kind = Order::Kind::kill_unit, .signal = SIGKILL, .unit = 2}));
    policy.on_gone(kPolicyStart, 2);
    EXPECT_FALSE(policy.next_deadline()) << "rank 0 is still running";
    policy.on_ended(kPolicyStart, 0, exit_code(0));
    EXPECT_EQ(policy.next_deadline(), kPolicyStart + 1s) << "for processes left behind";
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
    EXPECT_EQ(policy.exit_code(), 0);
}

TEST(PolicyTest, restarted_unit_counts_again) {
    Policy policy = three_ranks();
    policy.on_gone(kPolicyStart, 1);
    policy.on_restarted(1);
    policy.on_ended(kPolicyStart, 0, exit_code(0));
    policy.on_ended(kPolicyStart, 2, exit_code(0));
    policy.on_alone();
    EXPECT_FALSE(policy.finished()) << "sent before the restart";
    policy.on_ended(kPolicyStart, 1, exit_code(0));
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
}

TEST(PolicyTest, failed_process_of_another_host_ends_the_run) {
    Policy policy({.units = {"host b (ranks 0 to 3)"}, .grace = 10s, .linger = 1s});
    policy.on_process_failed(kPolicyStart, 7, "rank 2 exited with code 7", true);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kTermUnits)) << "its other ranks still run";
    EXPECT_THAT(policy.take_lines(),
                ElementsAre("rank 2 exited with code 7; the others get SIGTERM, and SIGKILL after "
                            "10s"));
    policy.on_failed(kPolicyStart, 0, 143, "host b exited with code 143");
    EXPECT_THAT(policy.take_lines(), IsEmpty());
    EXPECT_EQ(policy.exit_code(), 7);
    Policy alone({.units = {"rank 0"}});
    alone.on_process_failed(kPolicyStart, 7, "too few", false);
    EXPECT_THAT(alone.take_orders(), IsEmpty());
    EXPECT_THAT(alone.take_lines(), ElementsAre("too few"));
}

TEST(PolicyTest, part_that_holds_stays_until_it_is_released) {
    const auto holding = [] {
        return Policy({.units = {"rank 0", "rank 1"}, .grace = 10s, .linger = 1s, .holds = true});
    };
    for (const bool alone_first : {true, false}) {
        Policy policy = holding();
        policy.on_gone(kPolicyStart, 0);
        policy.on_ended(kPolicyStart, 1, exit_code(0));
        if (alone_first) policy.on_alone();
        EXPECT_FALSE(policy.finished());
        EXPECT_FALSE(policy.next_deadline());
        policy.release(kPolicyStart);
        EXPECT_EQ(policy.finished(), alone_first);
        if (!alone_first) policy.on_alone();
        EXPECT_TRUE(policy.finished());
        EXPECT_EQ(policy.exit_code(), 0);
    }
    Policy restarted = holding();
    restarted.on_gone(kPolicyStart, 0);
    restarted.on_gone(kPolicyStart, 1);
    restarted.on_alone();
    restarted.on_restarted(1);
    restarted.release(kPolicyStart);
    EXPECT_FALSE(restarted.finished()) << "rank 1 runs again";
    restarted.on_ended(kPolicyStart, 1, exit_code(0));
    restarted.on_alone();
    EXPECT_TRUE(restarted.finished());
}

TEST(PolicyTest, signal_and_lost_launcher_end_the_hold) {
    Policy signalled({.units = {"rank 0"}, .holds = true});
    signalled.on_gone(kPolicyStart, 0);
    signalled.on_alone();
    EXPECT_FALSE(signalled.finished());
    signalled.on_signal(kPolicyStart, SIGUSR1);
    EXPECT_FALSE(signalled.finished());
    signalled.on_signal(kPolicyStart, SIGTERM);
    EXPECT_TRUE(signalled.finished());
    Policy abandoned({.units = {"rank 0"}, .holds = true});
    abandoned.on_gone(kPolicyStart, 0);
    abandoned.on_abandoned();
    abandoned.on_alone();
    EXPECT_TRUE(abandoned.finished());
    Policy alone_before({.units = {"rank 0"}, .holds = true});
    alone_before.on_gone(kPolicyStart, 0);
    alone_before.on_alone();
    alone_before.on_abandoned();
    EXPECT_TRUE(alone_before.finished()) << "the keeper says only once that it is alone";
    EXPECT_EQ(alone_before.exit_code(), 129);
}

TEST(PolicyTest, strays_get_a_moment_then_sigterm_then_sigkill) {
    Policy policy = three_ranks();
    for (const std::size_t rank : {0U, 1U, 2U}) policy.on_ended(kPolicyStart, rank, exit_code(0));
    ASSERT_EQ(policy.next_deadline(), kPolicyStart + 1s);
    policy.on_time(kPolicyStart + 1s);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kTermStrays));
    EXPECT_THAT(policy.take_lines(), ElementsAre(HasSubstr("left processes behind")));
    ASSERT_EQ(policy.next_deadline(), kPolicyStart + 11s);
    policy.on_time(kPolicyStart + 11s);
    EXPECT_THAT(policy.take_orders(), ElementsAre(kKillAll));
    policy.on_alone();
    EXPECT_TRUE(policy.finished());
    EXPECT_EQ(policy.exit_code(), 0);
}

TEST(PolicyTest, missing_program_is_reported_once) {
    Policy policy = three_ranks();
    policy.on_not_started(kPolicyStart, 1, "./x: No such file or directory");
    policy.on_ended(kPolicyStart, 1, exit_code(127));
    EXPECT_THAT(policy.take_lines(),
                ElementsAre(HasSubstr("rank 1 cannot be started: ./x: No such file")));
    EXPECT_EQ(policy.exit_code(), 127);
}

TEST(PolicyTest, lost_output_and_lost_launcher_kill_all_once) {
    Policy unread = three_ranks();
    unread.on_output_lost();
    unread.on_output_lost();
    EXPECT_THAT(unread.take_orders(), ElementsAre(kKillAll));
    EXPECT_EQ(unread.exit_code(), 141);
    Policy abandoned = three_ranks();
    abandoned.on_abandoned();
    EXPECT_THAT(abandoned.take_orders(), ElementsAre(kKillAll));
    EXPECT_EQ(abandoned.exit_code(), 129);
}

}  // namespace
}  // namespace nexar::run
