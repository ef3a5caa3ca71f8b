#include "runtime/baton.hpp"

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

TEST(baton, the_first_waiter_takes_it_and_the_others_queue) {
    Baton baton;
    Waiter first;
    Waiter second;
    EXPECT_EQ(baton.take(first), Baton::Taken::free);
    EXPECT_FALSE(first.granted()) << "it knows from the result";
    EXPECT_FALSE(baton.contended());
    EXPECT_EQ(baton.take(second), Baton::Taken::queued);
    EXPECT_FALSE(second.granted());
    EXPECT_TRUE(baton.contended());
    EXPECT_FALSE(baton.try_take());
}

TEST(baton, release_grants_it_to_the_first_queued_waiter_that_was_not_told) {
    Baton baton;
    Waiter holder;
    Waiter told;
    Waiter next;
    Waiter last;
    baton.take(holder);
    for (Waiter* const waiter : {&told, &next, &last}) {
        EXPECT_EQ(baton.take(*waiter), Baton::Taken::queued);
    }
    told.tell();
    EXPECT_FALSE(baton.release().summon);
    EXPECT_FALSE(told.granted());
    EXPECT_TRUE(next.granted());
    EXPECT_FALSE(last.granted());
    EXPECT_FALSE(baton.leave(told));
    EXPECT_TRUE(baton.contended());
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(last.granted());
    EXPECT_FALSE(baton.contended());
}

// Otherwise the background thread would release and retake the baton until those waiters are
// scheduled.
TEST(baton, notified_waiters_do_not_count_as_contention) {
    Baton baton;
    Waiter told;
    Waiter next;
    ASSERT_EQ(baton.look(), Baton::Look::took);
    baton.take(told);
    EXPECT_TRUE(baton.contended());
    told.tell();
    EXPECT_FALSE(baton.contended());
    baton.take(next);
    EXPECT_TRUE(baton.contended());
    EXPECT_FALSE(baton.leave(told));
    EXPECT_FALSE(baton.leave(next));
}

TEST(baton, a_waiter_that_leaves_too_late_holds_it_and_must_release_it) {
    Baton baton;
    Waiter holder;
    Waiter leaving;
    baton.take(holder);
    baton.take(leaving);
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(baton.leave(leaving));
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(baton.try_take());
}

TEST(baton, waiters_may_leave_from_the_middle_and_both_ends_of_the_queue) {
    Baton baton;
    Waiter holder;
    Waiter line[5];
    baton.take(holder);
    for (Waiter& waiter : line) baton.take(waiter);
    EXPECT_FALSE(baton.leave(line[2]));
    EXPECT_FALSE(baton.leave(line[0]));
    EXPECT_FALSE(baton.leave(line[4]));
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(line[1].granted());
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(line[3].granted());
    EXPECT_FALSE(baton.contended());
}

TEST(baton, the_background_thread_takes_a_baton_unused_since_its_last_look) {
    Baton baton;
    EXPECT_EQ(baton.look(), Baton::Look::took);
    EXPECT_FALSE(baton.release().summon);
    Waiter waiter;
    baton.take(waiter);
    EXPECT_EQ(baton.look(), Baton::Look::again);
    EXPECT_FALSE(baton.release().summon);
    Waiter another;
    baton.take(another);
    EXPECT_FALSE(baton.release().summon);
    EXPECT_EQ(baton.look(), Baton::Look::again);
    EXPECT_EQ(baton.look(), Baton::Look::took);
}

TEST(baton, the_background_thread_goes_away_during_a_long_wait_and_is_summoned_after_it) {
    Baton baton;
    Waiter waiter;
    baton.take(waiter);
    EXPECT_EQ(baton.look(), Baton::Look::again);
    EXPECT_EQ(baton.look(), Baton::Look::away);
    EXPECT_TRUE(baton.release().summon);
    EXPECT_EQ(baton.look(), Baton::Look::took);
}

TEST(baton, a_waiter_steals_it_from_a_resting_background_thread_which_notices) {
    Baton baton;
    Waiter thief;
    EXPECT_EQ(baton.look(), Baton::Look::took);
    EXPECT_TRUE(baton.rest());
    EXPECT_EQ(baton.take(thief), Baton::Taken::stolen);
    EXPECT_FALSE(baton.resume());
    EXPECT_EQ(baton.look(), Baton::Look::again);
}

TEST(baton, a_thread_that_does_not_wait_takes_or_steals_it_but_never_queues) {
    Baton baton;
    EXPECT_EQ(baton.try_take_or_steal(), Baton::Taken::free);
    EXPECT_EQ(baton.try_take_or_steal(), std::nullopt) << "a waiter holds it";
    EXPECT_EQ(baton.look(), Baton::Look::again) << "counts as used";
    EXPECT_FALSE(baton.contended());
    EXPECT_FALSE(baton.release().summon);
    ASSERT_EQ(baton.look(), Baton::Look::took);
    EXPECT_EQ(baton.try_take_or_steal(), std::nullopt) << "the background thread is awake";
    ASSERT_TRUE(baton.rest());
    EXPECT_EQ(baton.try_take_or_steal(), Baton::Taken::stolen);
    EXPECT_FALSE(baton.resume());
}

TEST(baton, an_awake_background_thread_keeps_it_and_cannot_rest_while_others_wait) {
    Baton baton;
    Waiter waiter;
    EXPECT_EQ(baton.look(), Baton::Look::took);
    EXPECT_TRUE(baton.rest());
    EXPECT_TRUE(baton.resume());
    EXPECT_EQ(baton.take(waiter), Baton::Taken::queued);
    EXPECT_FALSE(baton.rest());
    EXPECT_FALSE(baton.release().summon);
    EXPECT_TRUE(waiter.granted());
}

TEST(baton, a_call_finds_it_free_or_reaches_its_holder) {
    Baton baton;
    Waiter waiter;
    EXPECT_TRUE(baton.call());
    EXPECT_EQ(baton.look(), Baton::Look::took);
    EXPECT_FALSE(baton.release().summon);
    baton.take(waiter);
    baton.set_wanted(true);
    EXPECT_FALSE(baton.call());
    EXPECT_TRUE(baton.release().summon);
    EXPECT_EQ(baton.look(), Baton::Look::took);
}

}  // namespace
}  // namespace nexar::runtime
