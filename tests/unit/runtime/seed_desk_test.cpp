// Which joiner gets which rank.

#include <gmock/gmock.h>

#include "unit/runtime/seed_desk_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Desk, assigns_ranks_in_order_of_arrival) {
    const Held held = token(3);
    EXPECT_EQ(let_in(held, 1).rank, Rank(0));
    EXPECT_EQ(let_in(held, 2).rank, Rank(1));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2));
}

TEST_F(Desk, assigns_requested_ranks_and_fills_the_gaps) {
    const Held held = token(3);
    EXPECT_EQ(let_in(held, 1, Rank(1)).rank, Rank(1));
    EXPECT_EQ(let_in(held, 2).rank, Rank(0));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2));
    std::vector<Rank> ranks;
    for (const auto& one : desk_->state().members) ranks.push_back(one.rank);
    EXPECT_THAT(ranks, ElementsAre(Rank(0), Rank(1), Rank(2)));
}

TEST_F(Desk, refuses_ranks_that_are_taken_or_do_not_exist) {
    const Held held = token(3);
    let_in(held, 1, Rank(1));
    const auto taken = admit(applicant(held, 2, Rank(1)));
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), Errc::invalid_argument);
    EXPECT_THAT(taken.error().cause(), AllOf(HasSubstr("rank 1"), HasSubstr("host1")));
    const auto beyond = admit(applicant(held, 2, Rank(3)));
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code(), Errc::invalid_argument);
    EXPECT_THAT(beyond.error().cause(), HasSubstr("0 to 2"));
    // The failed attempts did not use up the token.
    let_in(held, 2);
    let_in(held, 3);
}

TEST_F(Desk, refuses_more_members_than_the_world_size_while_the_world_forms) {
    const Held held = token(3);
    for (unsigned key = 1; key <= 3; ++key) attend(let_in(held, key));
    const auto fourth = admit(applicant(token(1), 4));
    ASSERT_FALSE(fourth);
    EXPECT_EQ(fourth.error().code(), Errc::too_many_pending);
    EXPECT_THAT(fourth.error().cause(), HasSubstr("complete"));
}

TEST_F(Desk, admits_a_token_as_often_as_it_allows) {
    const Held held = token(2);
    let_in(held, 1);
    let_in(held, 2);
    const auto third = admit(applicant(held, 3));
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code(), Errc::unauthenticated);
}

TEST_F(Desk, refuses_tokens_that_are_unknown_wrong_expired_or_revoked) {
    const std::uint64_t revision = desk_->revision();
    const Held held = token(3);
    const Held stranger{.id = {}, .secret = held.secret};
    EXPECT_EQ(admit(applicant(stranger, 1)).error().code(), Errc::unauthenticated);
    Held wrong = held;
    wrong.secret.front() ^= std::byte{1};
    EXPECT_EQ(admit(applicant(wrong, 1)).error().code(), Errc::unauthenticated);
    const Held brief = token(3, seconds(60));
    wall_ += seconds(61);
    EXPECT_THAT(admit(applicant(brief, 1)).error().cause(), HasSubstr("expired"));
    ASSERT_TRUE(tokens_.revoke(held.id));
    EXPECT_THAT(admit(applicant(held, 1)).error().cause(), HasSubstr("revoked"));
    EXPECT_TRUE(desk_->state().members.empty());
    EXPECT_TRUE(desk_->state().spent.empty());
    EXPECT_EQ(desk_->revision(), revision);
}

TEST_F(Desk, gives_the_same_key_the_same_rank_again) {
    const Held held = token(1);
    const Member first = let_in(held, 1);
    const std::uint64_t revision = desk_->revision();
    EXPECT_EQ(let_in(held, 1), first);
    EXPECT_EQ(desk_->revision(), revision) << "there is nothing new to store";
    // Neither the key alone nor the token alone is enough.
    Held wrong = held;
    wrong.secret.front() ^= std::byte{1};
    EXPECT_FALSE(admit(applicant(wrong, 1)));
    EXPECT_FALSE(admit(applicant(held, 2)));
    EXPECT_NE(let_in(token(1), 1).node, first.node) << "the same key with another token";
}

TEST_F(Desk, requires_no_token_from_a_joiner_that_proved_the_job_secret) {
    Applicant one = applicant({}, 1);
    one.proved_job_secret = true;
    const Member member = admit(one).value();
    EXPECT_EQ(admit(one).value(), member);
    EXPECT_TRUE(desk_->state().spent.empty());
}

TEST_F(Desk, publishes_a_view_only_once_all_members_attend) {
    const Held held = token(3);
    std::vector<Member> all;
    for (unsigned i = 1; i <= 3; ++i) all.push_back(let_in(held, i));
    attend(all[0]);
    attend(all[1]);
    EXPECT_FALSE(desk_->try_form());
    EXPECT_FALSE(desk_->view());
    attend(all[2]);
    EXPECT_TRUE(desk_->try_form());
    EXPECT_FALSE(desk_->try_form()) << "a world forms only once";
    const View view = desk_->view().value();
    EXPECT_EQ(view.epoch, Epoch(1));
    EXPECT_EQ(view.members, all);
    EXPECT_EQ(view.members[0].addresses, std::vector{some_address});
    ASSERT_TRUE(view.witness.has_value());
    EXPECT_EQ(view.witness->incarnation, Incarnation(9));
    EXPECT_EQ(view.next_rank, Rank(3));
    EXPECT_EQ(view.spent, (std::vector<SpentToken>{{.token = held.id.bytes(), .uses = 3}}));
    EXPECT_TRUE(desk_->state().members.empty()) << "they are in the view";
    EXPECT_EQ(desk_->status(), "3 of 3 joined");
}

TEST_F(Desk, refuses_attendance_of_non_members) {
    const Member member = let_in(token(1), 1);
    Identity other = identity(member);
    other.incarnation = Incarnation(2);
    EXPECT_EQ(desk_->attend(other).error().code(), Errc::unauthenticated);
    EXPECT_EQ(desk_->attend({}).error().code(), Errc::unauthenticated);
    EXPECT_EQ(desk_->attending(), 0U);
    desk_->leave(member.node, now_);  // it never attended
    EXPECT_EQ(desk_->attending(), 0U);
}

TEST_F(Desk, reassigns_the_rank_of_a_member_that_stays_away) {
    const Held held = token(3);
    const Member first = let_in(held, 1);
    ASSERT_EQ(desk_->next_deadline(), now_ + seconds(30));
    attend(first);
    desk_->leave(first.node, now_);
    ASSERT_EQ(desk_->next_deadline(), now_ + seconds(30));
    pass(milliseconds(29'999));
    const auto early = admit(applicant(held, 2, Rank(0)));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code(), Errc::too_many_pending) << "it may retry";
    EXPECT_THAT(early.error().cause(), HasSubstr("rank 0 is reserved for a process on host1"));
    pass(milliseconds(1));
    EXPECT_FALSE(desk_->next_deadline());
    const Member second = let_in(held, 2, Rank(0));
    EXPECT_EQ(second.rank, Rank(0));
    EXPECT_NE(second.node, first.node);
    EXPECT_EQ(desk_->state().members.size(), 1U);
    EXPECT_EQ(desk_->attend(identity(first)).error().code(), Errc::unauthenticated);
    // The token's use stays spent, so that nobody can retry secrets at leisure.
    let_in(held, 3);
    EXPECT_FALSE(admit(applicant(held, 4)));
}

TEST_F(Desk, keeps_the_rank_of_a_member_until_another_joiner_needs_it) {
    const Held held = token(4);
    const Member first = let_in(held, 1);
    const Member second = let_in(held, 2);
    attend(second);
    pass(seconds(500));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2)) << "the free rank";
    attend(first);
    EXPECT_EQ(desk_->attending(), 2U);
    pass(seconds(500));
    EXPECT_EQ(let_in(held, 4).rank, Rank(2)) << "the rank of an absent member";
    EXPECT_TRUE(desk_->attend(identity(first)));
}

TEST_F(Desk, readmits_a_displaced_key_with_its_spent_token_as_a_new_node) {
    const Held own = token(1);
    const Member first = let_in(own, 1, Rank(1));
    pass(seconds(30));
    const Member other = let_in(token(1), 2, Rank(1));
    EXPECT_EQ(desk_->attend(identity(first)).error().code(), Errc::unauthenticated);
    EXPECT_FALSE(admit(applicant(own, 3))) << "the token is spent for every other key";
    const auto taken = admit(applicant(own, 1, Rank(1)));
    ASSERT_FALSE(taken) << "a rank is granted once";
    EXPECT_EQ(taken.error().code(), Errc::invalid_argument);
    attend(other);
    const Member again = let_in(own, 1);
    EXPECT_NE(again.rank, Rank(1));
    EXPECT_NE(again.node, first.node) << "an identity is granted once";
    EXPECT_EQ(let_in(own, 1), again) << "its answer was lost";
    EXPECT_EQ(desk_->state().spent.size(), 2U);
    for (const auto& spent : desk_->state().spent) EXPECT_EQ(spent.uses, 1U);
    attend(again);
    attend(let_in(token(1), 4));
    EXPECT_TRUE(desk_->try_form());
    EXPECT_FALSE(admit(applicant(own, 5)));
}

TEST_F(Desk, refuses_a_displaced_key_once_the_world_has_formed) {
    const Held own = token(1);
    let_in(own, 1, Rank(1));
    pass(seconds(30));
    form(2);
    EXPECT_EQ(admit(applicant(own, 1)).error().code(), Errc::unauthenticated);
}

TEST_F(Desk, reassigns_the_rank_of_a_member_that_said_goodbye_at_once) {
    const Held held = token(2);
    const Member first = let_in(held, 1, Rank(2));
    attend(first);
    desk_->leave(first.node, now_, true);
    EXPECT_EQ(let_in(held, 2, Rank(2)).rank, Rank(2));
}

TEST_F(Desk, keeps_the_rank_of_a_member_that_returns_in_time) {
    const Member member = let_in(token(1), 1);
    attend(member);
    EXPECT_FALSE(desk_->next_deadline());
    desk_->leave(member.node, now_);
    EXPECT_EQ(desk_->attending(), 0U);
    pass(seconds(29));
    attend(member);
    pass(seconds(100));
    EXPECT_EQ(desk_->attending(), 1U);
    EXPECT_EQ(desk_->state().members.size(), 1U);
}

}  // namespace
}  // namespace nexar::runtime
