// The checker of the chaos tests finds what it must find.

#include "process/chaos/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using chaos_checker::check;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string rank_0 =
    "joined 0\nworld 1 -1 0,1\nreduce 1 0 10\nreduced 1 0 30\nsend 1 0 0.0 1\nsent 1 0 0.0\n"
    "got 1 0 1.0 1\ncall 0.1 1\ncalled 0.1\nreduce 1 1 11\nreduced 1 1 32\n";
const std::string rank_1 =
    "joined 1\nworld 1 -1 0,1\nreduce 1 0 20\nreduced 1 0 30\nsend 1 0 1.0 0\nsent 1 0 1.0\n"
    "got 1 0 0.0 1\nran 0.1\nreduce 1 1 21\nreduced 1 1 32\n";

std::string without(std::string log, const std::string& line) {
    return log.erase(log.find(line), line.size());
}

std::vector<std::string> wrong(const std::string& more_0, const std::string& more_1 = "") {
    return check({rank_0 + more_0, rank_1 + more_1}).wrong;
}

TEST(ChaosChecker, faultless_logs_are_accepted) {
    const auto found = check({rank_0, rank_1});
    EXPECT_THAT(found.wrong, IsEmpty());
    EXPECT_EQ(found.sums, 4);
    EXPECT_EQ(found.messages, 2);
    EXPECT_EQ(found.calls, 1);
}

TEST(ChaosChecker, wrong_sum_is_found) {
    EXPECT_THAT(wrong("reduce 1 2 1\nreduced 1 2 4\n", "reduce 1 2 2\n"),
                ElementsAre(HasSubstr("got the sum 4 instead of 3")));
}

TEST(ChaosChecker, sum_without_a_member_is_found) {
    EXPECT_THAT(wrong("reduce 1 2 1\nreduced 1 2 1\n"),
                ElementsAre(HasSubstr("completed without rank 1")));
}

TEST(ChaosChecker, two_lists_of_members_are_found) {
    EXPECT_THAT(wrong("world 2 1 0,1\n", "world 2 1 1\n"),
                ElementsAre(HasSubstr("two lists of members")));
}

TEST(ChaosChecker, two_views_of_one_epoch_are_found) {
    EXPECT_THAT(wrong("view 2 0,1\n", "view 2 0,1,2\n"),
                ElementsAre(HasSubstr("epoch 2 has two lists of members")));
}

TEST(ChaosChecker, message_received_twice_is_found) {
    EXPECT_THAT(wrong("", "got 1 0 0.0 1\n"), ElementsAre(HasSubstr("received twice")));
}

TEST(ChaosChecker, message_received_in_another_world_is_found) {
    EXPECT_THAT(wrong("send 1 1 0.2 1\n", "world 2 1 0,1\ngot 1 1 0.2 2\n"),
                ElementsAre(HasSubstr("was received in world 2")));
}

TEST(ChaosChecker, message_to_another_rank_is_found) {
    EXPECT_THAT(wrong("send 1 1 0.2 0\n", "got 1 1 0.2 1\n"),
                ElementsAre(HasSubstr("reached rank 1")));
}

TEST(ChaosChecker, lost_message_is_found) {
    EXPECT_THAT(check({rank_0, without(rank_1, "got 1 0 0.0 1\n")}).wrong,
                ElementsAre(HasSubstr("continued without it")));
}

TEST(ChaosChecker, lost_message_with_an_error_is_accepted) {
    EXPECT_THAT(check({rank_0, without(rank_1, "got 1 0 0.0 1\n") +
                                   "failed 1 membership_changed 1 in epoch 7\n"})
                    .wrong,
                IsEmpty());
}

TEST(ChaosChecker, error_without_an_epoch_is_found) {
    EXPECT_THAT(wrong("failed 1 membership_changed 0 a rank is gone\n"),
                ElementsAre(HasSubstr("does not name the epoch")));
}

TEST(ChaosChecker, call_that_never_ran_is_found) {
    EXPECT_THAT(check({rank_0, without(rank_1, "ran 0.1\n")}).wrong,
                ElementsAre(HasSubstr("never ran")));
}

TEST(ChaosChecker, call_that_ran_twice_is_found) {
    EXPECT_THAT(wrong("", "ran 0.1\n"), ElementsAre(HasSubstr("ran twice")));
}

TEST(ChaosChecker, evicted_process_that_continues_is_found) {
    EXPECT_THAT(wrong("evicted 1\nreduce 1 2 1\nreduced 1 2 3\n", "reduce 1 2 2\nreduced 1 2 3\n"),
                ElementsAre(HasSubstr("an evicted process completed an all-reduce")));
}

TEST(ChaosChecker, hang_and_unknown_events_are_found) {
    EXPECT_THAT(wrong("hang shrink world 1 step 2\n"), ElementsAre(HasSubstr("hang shrink")));
}

TEST(ChaosChecker, longest_call_of_each_kind_is_reported) {
    const auto found = check({rank_0 + "longest call 40\nlongest all_reduce 500\n",
                              rank_1 + "longest all_reduce 700\nlongest all_reduce 800\n"});
    EXPECT_THAT(found.wrong, IsEmpty());
    EXPECT_THAT(chaos_checker::describe(found),
                HasSubstr("longest calls: all_reduce 800 us, call 40 us; 0 findings"));
}

TEST(ChaosChecker, unfinished_last_line_is_ignored) {
    EXPECT_THAT(wrong("reduced 1 1 3"), IsEmpty());
}

TEST(ChaosChecker, members_that_were_removed_from_views_are_counted) {
    const auto found = check({rank_0 + "view 3 0,1,2\nview 4 0,1\n", rank_1 + "view 7 1,3\n"});
    EXPECT_EQ(found.removed, 2);
    EXPECT_EQ(found.evicted, 0);
}

TEST(ChaosChecker, growing_memory_is_found) {
    EXPECT_THAT(wrong("holds 1 1000 0 9 9\nholds 80 2000 0 9 9\nholds 81 99000 0 9 9\n"),
                ElementsAre(HasSubstr("grew by 97000 KiB")));
}

/// The log of a process that holds this much more in each of its worlds. What it holds at one
/// moment varies.
std::string holds_more(int heap, int mappings, int descriptors) {
    std::string log;
    for (int world = 1; world <= 400; ++world) {
        log += "holds " + std::to_string(world) + " 1000 " +
               std::to_string(1'000'000 + heap * world + 5000 * (world % 7)) + " " +
               std::to_string(60 + mappings * world + world % 3) + " " +
               std::to_string(20 + descriptors * world + world % 2) + "\n";
    }
    return log;
}

TEST(ChaosChecker, growth_in_every_world_is_found) {
    EXPECT_THAT(wrong(holds_more(0, 0, 0)), IsEmpty());
    EXPECT_THAT(wrong(holds_more(900, 0, 0)), IsEmpty());
    EXPECT_THAT(wrong(holds_more(1200, 0, 0)), ElementsAre(HasSubstr("bytes of heap per world")));
    EXPECT_THAT(wrong(holds_more(0, 1, 0)), ElementsAre(HasSubstr("mappings")));
    EXPECT_THAT(wrong(holds_more(0, 0, 1)), ElementsAre(HasSubstr("descriptors")));
}

}  // namespace
