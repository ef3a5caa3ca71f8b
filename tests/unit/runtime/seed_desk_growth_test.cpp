// Processes that join a cluster after it has formed.

#include <gmock/gmock.h>

#include "unit/runtime/seed_desk_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Desk, proposes_a_joiner_once_it_attends) {
    form();
    const Member joiner = let_in(token(1), 7);
    EXPECT_TRUE(desk_->joiners().empty());
    const std::uint64_t changes = desk_->joiner_changes();
    attend(joiner);
    EXPECT_GT(desk_->joiner_changes(), changes);
    EXPECT_THAT(desk_->joiners(), ElementsAre(joiner));
    EXPECT_EQ(desk_->view()->members.size(), 3U) << "the members decide";
    desk_->decided(next_view({joiner}));
    EXPECT_EQ(desk_->view()->epoch, Epoch(2));
    EXPECT_TRUE(desk_->joiners().empty());
    EXPECT_TRUE(desk_->state().members.empty());
    EXPECT_TRUE(desk_->attends(joiner.node));
    EXPECT_EQ(desk_->attending(), 4U);
    EXPECT_EQ(desk_->status(), "4 members in epoch 2");
}

TEST_F(Desk, gives_a_joiner_whose_answer_was_lost_the_same_node) {
    form();
    const Held held = token(1);
    const Member joiner = let_in(held, 7);
    EXPECT_EQ(let_in(held, 7).node, joiner.node);
    EXPECT_FALSE(admit(applicant(held, 8))) << "the use is reserved";
    attend(joiner);
    desk_->decided(next_view({joiner}));
    EXPECT_EQ(let_in(held, 7).node, joiner.node);
    EXPECT_FALSE(admit(applicant(held, 8))) << "the members have spent the token";
    desk_->decided(next_view({}, {Rank(3)}));
    EXPECT_FALSE(admit(applicant(held, 7))) << "it was evicted: it needs a new token";
    EXPECT_NE(let_in(token(1), 7).node, joiner.node);
}

TEST_F(Desk, keeps_joiners_across_a_restart) {
    const auto all = form();
    const Held held = token(1);
    const Member joiner = let_in(held, 7);
    restart();
    attend(all[0]);
    attend(joiner);
    EXPECT_THAT(desk_->joiners(), ElementsAre(joiner));
    EXPECT_FALSE(admit(applicant(held, 8)));
}

TEST_F(Desk, tokens_count_as_the_decided_views_say) {
    form();
    const Held held = token(2);
    View other = next_view();
    other.spent.push_back({.token = held.id.bytes(), .uses = 1});  // at another seed
    std::ranges::sort(other.spent, {}, &SpentToken::token);
    desk_->decided(other);
    let_in(held, 7);
    EXPECT_EQ(admit(applicant(held, 8)).error().code(), Errc::unauthenticated);
}

TEST_F(Desk, drops_a_joiner_whose_token_another_seed_has_granted_meanwhile) {
    form();
    const Held held = token(2);
    const Member first = let_in(held, 7);
    const Member second = let_in(held, 8);
    EXPECT_THAT(desk_->limits(tokens_),
                ElementsAre(SpentToken{.token = held.id.bytes(), .uses = 2},
                            SpentToken{.token = held.id.bytes(), .uses = 2}));
    View other = next_view();
    other.spent.push_back({.token = held.id.bytes(), .uses = 1});
    std::ranges::sort(other.spent, {}, &SpentToken::token);
    desk_->decided(other);
    desk_->drop_unlicensed(tokens_);
    EXPECT_TRUE(desk_->is_joiner(first.node));
    EXPECT_FALSE(desk_->is_joiner(second.node));
}

TEST_F(Desk, drops_a_joiner_that_does_not_attend_in_time) {
    form();
    const Held held = token(1);
    const Member joiner = let_in(held, 7);
    pass(milliseconds(29'999));
    EXPECT_TRUE(desk_->is_joiner(joiner.node));
    pass(milliseconds(1));
    EXPECT_FALSE(desk_->is_joiner(joiner.node));
    EXPECT_EQ(desk_->attend(identity(joiner)).error().code(), Errc::unauthenticated);
    const Member again = let_in(held, 7);
    EXPECT_NE(again.node, joiner.node) << "the members may have decided on the first one";
    attend(again);
    desk_->leave(again.node, now_, true);
    EXPECT_FALSE(desk_->is_joiner(again.node)) << "it gave up";
}

TEST_F(Desk, a_joiner_that_lost_its_link_is_not_proposed) {
    form();
    const Member joiner = let_in(token(1), 7);
    attend(joiner);
    desk_->leave(joiner.node, now_);
    EXPECT_TRUE(desk_->joiners().empty());
    attend(joiner);
    EXPECT_THAT(desk_->joiners(), ElementsAre(joiner));
}

TEST_F(Desk, a_joiner_that_missed_views_joins_as_a_new_node) {
    form();
    const Held held = token(1);
    const Member joiner = let_in(held, 7);
    attend(joiner);
    View later = next_view();
    later.epoch = Epoch(5);
    desk_->decided(later);
    EXPECT_EQ(desk_->attend(identity(joiner)).error().code(), Errc::unauthenticated)
        << "a view in between may have had it";
    EXPECT_NE(let_in(held, 7).node, joiner.node);
}

TEST_F(Desk, refuses_joiners_above_the_maximum) {
    const auto all = form();
    const wire::StoredSeed kept = desk_->state();
    start(kept, {.world = 3, .max_world = 4});
    for (const Member& member : all) attend(member);
    const Member joiner = let_in(token(1), 7);
    for (int i = 0; i < 2; ++i) {
        const auto fifth = admit(applicant(token(1), 8));
        ASSERT_FALSE(fifth);
        EXPECT_EQ(fifth.error().code(), Errc::too_many_pending);
        EXPECT_THAT(fifth.error().cause(), HasSubstr("4 of at most 4 members"));
        if (i == 0) desk_->decided(next_view({joiner}));
    }
    desk_->decided(next_view({}, {Rank(1)}));
    EXPECT_TRUE(admit(applicant(token(1), 8)));
}

TEST_F(Desk, never_gives_a_rank_twice) {
    form();
    desk_->decided(next_view({}, {Rank(1)}));
    for (const unsigned taken : {0U, 1U, 2U, 4U}) {
        const auto refused = admit(applicant(token(1), 7, Rank(taken)));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
        EXPECT_THAT(refused.error().cause(), AllOf(HasSubstr("ranks are never given twice"),
                                                   HasSubstr("the next one is 3")));
    }
    EXPECT_EQ(let_in(token(1), 7, Rank(3)).rank, Rank(3));
    EXPECT_EQ(let_in(token(1), 8).rank, Rank(4));
}

TEST_F(Desk, a_second_seed_learns_the_view_and_never_forms_one) {
    const auto all = form();
    const View view = desk_->view().value();
    start({.incarnation = 10}, {.world = 3, .second = true});
    const auto early = admit(applicant(token(1), 7));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code(), Errc::too_many_pending);
    EXPECT_THAT(early.error().cause(), HasSubstr("second seed"));
    EXPECT_FALSE(desk_->try_form());
    desk_->decided(view);
    attend(all[0]);
    attend(all[1]);
    const Member joiner = let_in(token(1), 7);
    EXPECT_EQ(joiner.rank, Rank(3));
}

TEST_F(Desk, the_vote_of_the_witness_counts_when_the_number_of_members_is_even) {
    const auto all = form();
    desk_->decided(next_view({}, {Rank(2)}));
    desk_->leave(all[1].node, now_);
    EXPECT_TRUE(admit(applicant(token(1), 7)))
        << "one member and this seed are two of three voters";
    View other = next_view();
    other.witness->incarnation = Incarnation(10);
    desk_->decided(other);
    EXPECT_FALSE(admit(applicant(token(1), 8))) << "another seed is the witness";
}

TEST_F(Desk, bounds_the_number_of_waiting_joiners) {
    form();
    Applicant one = applicant({}, 1);
    one.proved_job_secret = true;
    std::size_t admitted = 0;
    for (unsigned i = 0; i < 2000; ++i) {
        one.key[0] = static_cast<std::byte>(i >> 8U);
        one.key[1] = static_cast<std::byte>(i);
        const auto member = admit(one);
        if (member) {
            ++admitted;
        } else {
            EXPECT_EQ(member.error().code(), Errc::too_many_pending);
        }
    }
    EXPECT_EQ(admitted, 1024U);
}

}  // namespace
}  // namespace nexar::runtime
