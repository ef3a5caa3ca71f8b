// What the desk keeps across a restart, when it starts a new world, and what its status reports.

#include <gmock/gmock.h>

#include "unit/runtime/seed_desk_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Desk, remembers_members_and_spent_tokens_across_a_restart) {
    const Held held = token(1);
    const Member first = let_in(held, 1);
    attend(first);
    restart();
    EXPECT_FALSE(admit(applicant(held, 2))) << "the token is spent";
    EXPECT_EQ(let_in(held, 1), first) << "its answer may have been lost";
    pass(seconds(59));
    attend(first);
    pass(seconds(100));
    EXPECT_EQ(desk_->attending(), 1U);
}

TEST_F(Desk, waits_longer_for_members_after_a_restart_before_freeing_their_ranks) {
    let_in(token(1), 1);
    restart();
    EXPECT_EQ(desk_->next_deadline(), now_ + seconds(60));
    const Held other = token(3);
    pass(milliseconds(59'999));
    EXPECT_FALSE(admit(applicant(other, 2, Rank(0))));
    pass(milliseconds(1));
    EXPECT_EQ(let_in(other, 2, Rank(0)).rank, Rank(0));
}

TEST_F(Desk, keeps_the_view_across_a_restart) {
    const auto all = form();
    const View before = desk_->view().value();
    restart();
    EXPECT_EQ(desk_->view(), before);
    EXPECT_FALSE(desk_->try_form());
    attend(all[1]);
    pass(seconds(100));
    EXPECT_EQ(desk_->view(), before) << "only the members change it";
    EXPECT_EQ(desk_->state().epoch, Epoch(1));
}

TEST_F(Desk, starts_a_new_world_when_all_members_have_said_goodbye) {
    const auto all = form();
    desk_->leave(all[0].node, now_, true);
    desk_->leave(all[1].node, now_, true);
    EXPECT_TRUE(desk_->formed());
    desk_->leave(all[2].node, now_, true);
    EXPECT_FALSE(desk_->formed());
    EXPECT_FALSE(desk_->view());
    const auto next = form(4);
    EXPECT_EQ(desk_->view()->epoch, Epoch(5))
        << "the three members may have decided one view each that the seed does not know";
    EXPECT_EQ(desk_->view()->members, next);
    EXPECT_EQ(desk_->view()->spent.size(), 2U) << "tokens stay spent";
    EXPECT_EQ(desk_->attend(identity(all[0])).error().code(), Errc::unauthenticated);
}

TEST_F(Desk, has_formed_a_cluster_also_after_all_members_have_left) {
    EXPECT_FALSE(desk_->has_formed());
    const auto first = form();
    EXPECT_TRUE(desk_->has_formed());
    for (const Member& member : first) desk_->leave(member.node, now_, true);
    EXPECT_FALSE(desk_->formed());
    EXPECT_TRUE(desk_->has_formed());
    form(4);
    View last = next_view({}, {Rank(0), Rank(1), Rank(2)});
    last.left = {Rank(0), Rank(1), Rank(2)};
    desk_->decided(last);
    EXPECT_FALSE(desk_->formed());
    EXPECT_TRUE(desk_->has_formed());
}

TEST_F(Desk, starts_a_new_world_after_a_view_without_members) {
    form();
    View last = next_view({}, {Rank(0), Rank(1), Rank(2)});
    last.left = {Rank(0), Rank(1), Rank(2)};
    desk_->decided(last);
    EXPECT_FALSE(desk_->formed());
    EXPECT_EQ(desk_->state().epoch, Epoch(2));
    form(4);
    EXPECT_EQ(desk_->view()->epoch, Epoch(3));
}

TEST_F(Desk, never_starts_a_new_world_because_members_vanished) {
    const auto all = form();
    desk_->leave(all[0].node, now_, true);
    desk_->leave(all[1].node, now_);
    desk_->leave(all[2].node, now_);
    pass(hours(1000));
    EXPECT_TRUE(desk_->formed());
    EXPECT_EQ(desk_->attending(), 0U);
    EXPECT_THAT(desk_->status(), AllOf(HasSubstr("rank 1 on host2, rank 2 on host3"),
                                       HasSubstr("`nexar members forget 1 2`")));
    const auto late = admit(applicant(token(1), 9));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), Errc::too_many_pending) << "it may retry";
    EXPECT_THAT(late.error().cause(), HasSubstr("`nexar members forget 1 2`"));
    restart();
    pass(hours(1000));
    EXPECT_TRUE(desk_->formed());
    attend(all[2]);
    const auto early = admit(applicant(token(1), 9));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code(), Errc::too_many_pending);
    EXPECT_THAT(early.error().cause(), HasSubstr("only 1 of the 3 members are connected"));
    attend(all[1]);
    EXPECT_TRUE(admit(applicant(token(1), 9)));
}

TEST_F(Desk, a_member_that_returns_takes_its_goodbye_back) {
    const auto all = form();
    for (const Member& member : {all[0], all[1]}) desk_->leave(member.node, now_, true);
    attend(all[0]);
    desk_->leave(all[2].node, now_, true);
    EXPECT_TRUE(desk_->formed());
    desk_->leave(all[0].node, now_, true);
    EXPECT_FALSE(desk_->formed());
}

TEST_F(Desk, a_seed_that_lost_track_of_the_epochs_skips_some) {
    start({.seed = {std::byte{0x5e}}, .incarnation = 9, .least_epoch = Epoch(1000)}, {.world = 3});
    const auto all = form();
    EXPECT_EQ(desk_->view()->epoch, Epoch(1000));
    for (const Member& member : all) desk_->leave(member.node, now_, true);
    form(4);
    EXPECT_EQ(desk_->view()->epoch, Epoch(1004));
}

TEST_F(Desk, the_world_size_matters_only_until_the_world_has_formed) {
    form();
    restart(2);
    EXPECT_TRUE(desk_->formed());
    EXPECT_EQ(desk_->view()->members.size(), 3U);
}

TEST_F(Desk, starts_a_new_world_when_the_world_size_changes_before_it_has_formed) {
    attend(let_in(token(1), 1));
    restart(2);
    EXPECT_EQ(desk_->world(), 2U);
    EXPECT_TRUE(desk_->state().members.empty());
    EXPECT_EQ(desk_->state().spent.size(), 1U) << "tokens stay spent";
}

TEST_F(Desk, status_lists_missing_ranks_and_refused_joiners) {
    EXPECT_EQ(desk_->status(), "0 of 3 joined; waiting for ranks 0, 1, 2");
    const Held held = token(2);
    attend(let_in(held, 1));
    let_in(held, 2);
    EXPECT_EQ(desk_->status(),
              "1 of 3 joined; waiting for rank 2; not connected now: rank 1 on host2");
    const std::uint64_t changes = desk_->changes();
    desk_->refused("10.0.0.7", "it presented an expired token");
    EXPECT_GT(desk_->changes(), changes);
    EXPECT_THAT(desk_->status(), HasSubstr("; 10.0.0.7: it presented an expired token"));
}

TEST_F(Desk, status_lists_disconnected_members_of_a_formed_world) {
    const std::vector<Member> all = form();
    desk_->leave(all[1].node, now_);
    EXPECT_EQ(desk_->status(), "3 of 3 joined; not connected now: rank 1 on host2");
    EXPECT_TRUE(desk_->attends(all[0].node));
    EXPECT_FALSE(desk_->attends(all[1].node));
    desk_->leave(all[0].node, now_, true);
    desk_->leave(all[2].node, now_, true);
    attend(all[1]);
    desk_->leave(all[1].node, now_, true);
    EXPECT_EQ(desk_->status(), "0 of 3 joined; waiting for ranks 0, 1, 2");
}

TEST_F(Desk, a_repeated_refusal_is_not_a_change) {
    desk_->refused("10.0.0.7", "it presented an expired token");
    const std::uint64_t changes = desk_->changes();
    desk_->refused("10.0.0.7", "it presented an expired token");
    EXPECT_EQ(desk_->changes(), changes);
    desk_->refused("10.0.0.7", "it wants rank 9");
    EXPECT_GT(desk_->changes(), changes);
}

TEST_F(Desk, remembers_one_refusal_per_host_and_a_bounded_number_in_total) {
    for (int i = 0; i < 1000; ++i) desk_->refused("10.0.0.1", fmt::format("attempt <{}>", i));
    EXPECT_THAT(desk_->status(), AllOf(HasSubstr("<999>"), Not(HasSubstr("<998>"))));
    for (int i = 0; i < 1000; ++i) desk_->refused(fmt::format("host{}", i), "knocks");
    EXPECT_THAT(desk_->status(), AllOf(HasSubstr("host992:"), HasSubstr("host999:"),
                                       Not(HasSubstr("host991:")), Not(HasSubstr("10.0.0.1"))));
    form();
    EXPECT_EQ(desk_->status(), "3 of 3 joined");
}

TEST_F(Desk, gives_up_when_a_rank_exits_before_the_world_has_formed) {
    const Held held = token(3);
    const Member first = let_in(held, 1, Rank(0));
    attend(first);
    const std::uint64_t changes = desk_->changes();
    EXPECT_FALSE(desk_->give_up_on(Rank(3), "exited with code 0")) << "there is no such rank";
    EXPECT_FALSE(desk_->given_up());
    EXPECT_TRUE(desk_->give_up_on(Rank(2), "exited with code 0"));
    EXPECT_GT(desk_->changes(), changes);
    const auto late = admit(applicant(held, 2, Rank(1)));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), Errc::closed);
    EXPECT_EQ(late.error().cause(),
              "the cluster cannot form: rank 2 exited with code 0 before it had joined");
    const auto back = desk_->attend(identity(first));
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().cause(), late.error().cause());
    EXPECT_TRUE(desk_->give_up_on(Rank(0), "exited with code 0"));
    EXPECT_EQ(desk_->given_up()->cause(), late.error().cause())
        << "the first exit remains the cause";
}

TEST_F(Desk, does_not_claim_that_a_member_that_exited_never_joined) {
    attend(let_in(token(3), 1, Rank(2)));
    EXPECT_TRUE(desk_->give_up_on(Rank(2), "exited with code 0"));
    EXPECT_EQ(desk_->given_up()->cause(),
              "the cluster cannot form: rank 2 exited with code 0 before all other ranks had "
              "joined");
}

TEST_F(Desk, a_rank_may_exit_once_the_world_has_formed) {
    const auto members = form();
    EXPECT_FALSE(desk_->give_up_on(Rank(1), "exited with code 0"));
    for (const Member& member : members) desk_->leave(member.node, now_, true);
    ASSERT_FALSE(desk_->formed());
    EXPECT_FALSE(desk_->give_up_on(Rank(2), "exited with code 0")) << "its world has ended";
    EXPECT_FALSE(desk_->given_up());
}

TEST_F(Desk, forgets_spent_tokens_that_the_token_table_has_dropped) {
    for (std::size_t i = 0; i < wire::kMaxStoredTokens; ++i) {
        let_in(token(1, seconds(60)), 1);
        pass(seconds(30));
        wall_ += hours(24);  // the table drops a token a week after it expires
    }
    EXPECT_LE(desk_->state().spent.size(), wire::kMaxStoredTokens / 2);
}

}  // namespace
}  // namespace nexar::runtime
