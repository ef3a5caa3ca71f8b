#include "runtime/seed/seed_desk.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Address some_address = Address::parse("10.0.0.7:1234").value();

/// A token with its secret, as a joiner has it.
struct Held {
    security::TokenId id{};
    std::vector<std::byte> secret{};
};

class Desk : public ::testing::Test {
protected:
    explicit Desk(std::uint32_t world = 3) { start({.seed = {}, .incarnation = 9}, world); }

    void start(const wire::StoredSeed& state, std::uint32_t world) {
        desk_.emplace(
            state, world,
            [this] {
                std::array<std::byte, NodeId::kBytes> bytes{};
                bytes.back() = static_cast<std::byte>(++made_);
                return NodeId(bytes);
            },
            now_);
    }
    /// What a seed that is started again reads from its file.
    void restart(std::uint32_t world = 3) {
        const wire::StoredSeed kept = desk_->state();
        start(kept, world);
    }

    Held token(std::uint32_t uses, std::chrono::seconds life = hours(1)) {
        auto made = tokens_.create({.uses = uses, .life = life}, wall_).value();
        Held held{.id = made.token.id};
        made.secret.reveal([&](std::span<const std::byte> bytes) {
            held.secret.assign(bytes.begin(), bytes.end());
        });
        return held;
    }

    Applicant applicant(const Held& held, unsigned key, std::optional<Rank> rank = {}) const {
        Applicant one;
        one.token = held.id;
        one.secret = held.secret;
        one.key.fill(static_cast<std::byte>(key));
        one.wanted_rank = rank;
        one.addresses = {some_address};
        one.host = fmt::format("host{}", key);
        return one;
    }
    Result<Member> admit(const Applicant& one) { return desk_->admit(one, tokens_, wall_, now_); }
    Member let_in(const Held& held, unsigned key, std::optional<Rank> rank = {}) {
        return admit(applicant(held, key, rank)).value();
    }
    static Identity identity(const Member& member) {
        return {.cluster = {}, .node = member.node, .incarnation = member.incarnation};
    }
    void attend(const Member& member) { EXPECT_TRUE(desk_->attend(identity(member)).has_value()); }
    void pass(Duration span) {
        now_ += span;
        desk_->expire(now_);
    }
    /// All members, attending.
    std::vector<Member> form(unsigned first_key = 1) {
        const Held held = token(3);
        std::vector<Member> all;
        for (unsigned i = 0; i < 3; ++i) all.push_back(let_in(held, first_key + i));
        for (const Member& member : all) attend(member);
        EXPECT_TRUE(desk_->try_form());
        return all;
    }

    TimePoint now_ = TimePoint(seconds(50));
    security::WallTime wall_ = security::WallTime(hours(500'000));
    security::TokenTable tokens_;
    std::optional<SeedDesk> desk_;
    unsigned made_ = 0;
};

TEST_F(Desk, gives_ranks_in_the_order_of_arrival) {
    const Held held = token(3);
    EXPECT_EQ(let_in(held, 1).rank, Rank(0));
    EXPECT_EQ(let_in(held, 2).rank, Rank(1));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2));
}

TEST_F(Desk, gives_the_rank_that_is_wanted_and_fills_the_gaps) {
    const Held held = token(3);
    EXPECT_EQ(let_in(held, 1, Rank(1)).rank, Rank(1));
    EXPECT_EQ(let_in(held, 2).rank, Rank(0));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2));
    std::vector<Rank> ranks;
    for (const auto& one : desk_->state().members) ranks.push_back(one.member.rank);
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
    // The token was not used by what failed.
    let_in(held, 2);
    let_in(held, 3);
}

TEST_F(Desk, refuses_more_than_the_world_has) {
    form();
    const auto fourth = admit(applicant(token(1), 4));
    ASSERT_FALSE(fourth);
    EXPECT_EQ(fourth.error().code(), Errc::too_many_pending);
    EXPECT_THAT(fourth.error().cause(), HasSubstr("complete"));
}

TEST_F(Desk, lets_a_token_in_as_often_as_it_says) {
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

TEST_F(Desk, gives_the_same_key_the_same_place_again) {
    const Held held = token(1);
    const Member first = let_in(held, 1);
    const std::uint64_t revision = desk_->revision();
    EXPECT_EQ(let_in(held, 1), first);
    EXPECT_EQ(desk_->revision(), revision) << "nothing is to be kept anew";
    // The key alone is not enough, nor is the token.
    Held wrong = held;
    wrong.secret.front() ^= std::byte{1};
    EXPECT_FALSE(admit(applicant(wrong, 1)));
    EXPECT_FALSE(admit(applicant(held, 2)));
    EXPECT_NE(let_in(token(1), 1).node, first.node) << "the same key with another token";
}

TEST_F(Desk, needs_no_token_of_who_proved_the_secret_of_the_job) {
    Applicant one = applicant({}, 1);
    one.proved_job_secret = true;
    const Member member = admit(one).value();
    EXPECT_EQ(admit(one).value(), member);
    EXPECT_TRUE(desk_->state().spent.empty());
}

TEST_F(Desk, publishes_a_view_when_all_attend_and_not_before) {
    const Held held = token(3);
    std::vector<Member> all;
    for (unsigned i = 1; i <= 3; ++i) all.push_back(let_in(held, i));
    attend(all[0]);
    attend(all[1]);
    EXPECT_FALSE(desk_->try_form());
    EXPECT_FALSE(desk_->view());
    attend(all[2]);
    EXPECT_TRUE(desk_->try_form());
    EXPECT_FALSE(desk_->try_form()) << "once";
    const View view = desk_->view().value();
    EXPECT_EQ(view.epoch, Epoch(1));
    EXPECT_EQ(view.members, all);
    EXPECT_EQ(view.members[0].addresses, std::vector{some_address});
    ASSERT_TRUE(view.witness.has_value());
    EXPECT_EQ(view.witness->incarnation, Incarnation(9));
    EXPECT_EQ(desk_->status(), "3 of 3 joined");
}

TEST_F(Desk, does_not_know_who_is_no_member) {
    const Member member = let_in(token(1), 1);
    Identity other = identity(member);
    other.incarnation = Incarnation(2);
    EXPECT_EQ(desk_->attend(other).error().code(), Errc::unauthenticated);
    EXPECT_EQ(desk_->attend({}).error().code(), Errc::unauthenticated);
    EXPECT_EQ(desk_->attending(), 0U);
    desk_->leave(member.node, now_);  // was never there
    EXPECT_EQ(desk_->attending(), 0U);
}

TEST_F(Desk, gives_the_place_of_who_does_not_come_to_another) {
    const Held held = token(3);
    const Member first = let_in(held, 1);
    ASSERT_EQ(desk_->next_deadline(), now_ + seconds(30));
    attend(first);
    desk_->leave(first.node, now_);
    ASSERT_EQ(desk_->next_deadline(), now_ + seconds(30));
    pass(milliseconds(29'999));
    const auto early = admit(applicant(held, 2, Rank(0)));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code(), Errc::too_many_pending) << "it may ask again";
    EXPECT_THAT(early.error().cause(), HasSubstr("rank 0 is kept for a process on host1"));
    pass(milliseconds(1));
    EXPECT_FALSE(desk_->next_deadline());
    const Member second = let_in(held, 2, Rank(0));
    EXPECT_EQ(second.rank, Rank(0));
    EXPECT_NE(second.node, first.node);
    EXPECT_EQ(desk_->state().members.size(), 1U);
    EXPECT_EQ(desk_->attend(identity(first)).error().code(), Errc::unauthenticated);
    // The use is gone all the same: a secret is not to be tried at leisure.
    let_in(held, 3);
    EXPECT_FALSE(admit(applicant(held, 4)));
}

TEST_F(Desk, keeps_the_place_of_a_member_as_long_as_nobody_else_needs_it) {
    const Held held = token(4);
    const Member first = let_in(held, 1);
    const Member second = let_in(held, 2);
    attend(second);
    pass(seconds(500));
    EXPECT_EQ(let_in(held, 3).rank, Rank(2)) << "the rank that nobody has";
    attend(first);
    EXPECT_EQ(desk_->attending(), 2U);
    pass(seconds(500));
    EXPECT_EQ(let_in(held, 4).rank, Rank(2)) << "of those who are away";
    EXPECT_TRUE(desk_->attend(identity(first)));
}

TEST_F(Desk, lets_a_displaced_key_in_again_on_its_spent_token_as_another_node) {
    const Held own = token(1);
    const Member first = let_in(own, 1, Rank(1));
    pass(seconds(30));
    const Member other = let_in(token(1), 2, Rank(1));
    EXPECT_EQ(desk_->attend(identity(first)).error().code(), Errc::unauthenticated);
    EXPECT_FALSE(admit(applicant(own, 3))) << "the token is spent for everybody else";
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

TEST_F(Desk, does_not_let_a_displaced_key_in_when_the_world_has_formed) {
    const Held own = token(1);
    let_in(own, 1, Rank(1));
    pass(seconds(30));
    form(2);
    EXPECT_EQ(admit(applicant(own, 1)).error().code(), Errc::unauthenticated);
}

TEST_F(Desk, gives_the_place_of_a_member_that_said_goodbye_away_at_once) {
    const Held held = token(2);
    const Member first = let_in(held, 1, Rank(2));
    attend(first);
    desk_->leave(first.node, now_, true);
    EXPECT_EQ(let_in(held, 2, Rank(2)).rank, Rank(2));
}

TEST_F(Desk, keeps_the_place_of_who_comes_back_in_time) {
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

TEST_F(Desk, knows_after_a_restart_who_had_joined_and_what_was_spent) {
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

TEST_F(Desk, waits_longer_for_members_after_a_restart_and_then_makes_room) {
    let_in(token(1), 1);
    restart();
    EXPECT_EQ(desk_->next_deadline(), now_ + seconds(60));
    const Held other = token(3);
    pass(milliseconds(59'999));
    EXPECT_FALSE(admit(applicant(other, 2, Rank(0))));
    pass(milliseconds(1));
    EXPECT_EQ(let_in(other, 2, Rank(0)).rank, Rank(0));
}

TEST_F(Desk, keeps_a_view_over_a_restart) {
    const auto all = form();
    const View before = desk_->view().value();
    restart();
    EXPECT_EQ(desk_->view(), before);
    EXPECT_FALSE(desk_->try_form());
    attend(all[1]);
    pass(seconds(100));
    EXPECT_EQ(desk_->view(), before) << "who left does not change it yet";
}

TEST_F(Desk, begins_a_new_world_when_the_last_member_has_left) {
    const auto all = form();
    desk_->leave(all[0].node, now_);
    desk_->leave(all[1].node, now_);
    EXPECT_TRUE(desk_->formed());
    desk_->leave(all[2].node, now_);
    EXPECT_FALSE(desk_->formed());
    EXPECT_FALSE(desk_->view());
    const auto next = form(4);
    EXPECT_EQ(desk_->view()->epoch, Epoch(2)) << "epochs only grow";
    EXPECT_EQ(desk_->view()->members, next);
    EXPECT_EQ(desk_->attend(identity(all[0])).error().code(), Errc::unauthenticated);
}

TEST_F(Desk, begins_a_new_world_when_nobody_comes_back_after_a_restart) {
    form();
    restart();
    pass(seconds(59));
    EXPECT_TRUE(desk_->formed());
    pass(seconds(1));
    EXPECT_FALSE(desk_->formed());
    EXPECT_EQ(desk_->state().epoch, Epoch(1));
}

TEST_F(Desk, begins_a_new_world_when_its_size_changes) {
    form();
    restart(2);
    EXPECT_FALSE(desk_->formed());
    EXPECT_EQ(desk_->world(), 2U);
    EXPECT_TRUE(desk_->state().members.empty());
    EXPECT_EQ(desk_->state().epoch, Epoch(1));
    EXPECT_EQ(desk_->state().spent.size(), 1U) << "tokens stay spent";
}

TEST_F(Desk, says_whom_it_waits_for_and_who_was_refused) {
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

TEST_F(Desk, says_which_members_of_a_formed_world_are_gone) {
    const std::vector<Member> all = form();
    desk_->leave(all[1].node, now_);
    EXPECT_EQ(desk_->status(), "3 of 3 joined; not connected now: rank 1 on host2");
    EXPECT_TRUE(desk_->attends(all[0].node));
    EXPECT_FALSE(desk_->attends(all[1].node));
    desk_->leave(all[0].node, now_);
    desk_->leave(all[2].node, now_);
    EXPECT_EQ(desk_->status(), "0 of 3 joined; waiting for ranks 0, 1, 2");
}

TEST_F(Desk, a_refusal_that_is_repeated_changes_nothing) {
    desk_->refused("10.0.0.7", "it presented an expired token");
    const std::uint64_t changes = desk_->changes();
    desk_->refused("10.0.0.7", "it presented an expired token");
    EXPECT_EQ(desk_->changes(), changes);
    desk_->refused("10.0.0.7", "it wants rank 9");
    EXPECT_GT(desk_->changes(), changes);
}

TEST_F(Desk, remembers_one_refusal_per_host_and_few_in_all) {
    for (int i = 0; i < 1000; ++i) desk_->refused("10.0.0.1", fmt::format("attempt <{}>", i));
    EXPECT_THAT(desk_->status(), AllOf(HasSubstr("<999>"), Not(HasSubstr("<998>"))));
    for (int i = 0; i < 1000; ++i) desk_->refused(fmt::format("host{}", i), "knocks");
    EXPECT_THAT(desk_->status(), AllOf(HasSubstr("host992:"), HasSubstr("host999:"),
                                       Not(HasSubstr("host991:")), Not(HasSubstr("10.0.0.1"))));
    form();
    EXPECT_EQ(desk_->status(), "3 of 3 joined");
}

TEST_F(Desk, gives_up_when_a_rank_is_gone_before_the_world_has_formed) {
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
    EXPECT_EQ(desk_->given_up()->cause(), late.error().cause()) << "the first one is the cause";
}

TEST_F(Desk, does_not_claim_that_a_member_which_is_gone_never_joined) {
    attend(let_in(token(3), 1, Rank(2)));
    EXPECT_TRUE(desk_->give_up_on(Rank(2), "exited with code 0"));
    EXPECT_EQ(desk_->given_up()->cause(),
              "the cluster cannot form: rank 2 exited with code 0 before all other ranks had "
              "joined");
}

TEST_F(Desk, a_rank_may_be_gone_once_the_world_has_formed) {
    const auto members = form();
    EXPECT_FALSE(desk_->give_up_on(Rank(1), "exited with code 0"));
    for (const Member& member : members) desk_->leave(member.node, now_);
    ASSERT_FALSE(desk_->formed());
    EXPECT_FALSE(desk_->give_up_on(Rank(2), "exited with code 0")) << "its world has ended";
    EXPECT_FALSE(desk_->given_up());
}

TEST_F(Desk, forgets_spent_tokens_that_the_table_has_forgotten) {
    for (std::size_t i = 0; i < wire::kMaxStoredTokens; ++i) {
        let_in(token(1, seconds(60)), 1);
        pass(seconds(30));
        wall_ += hours(24);  // a week after its end the table has forgotten it
    }
    EXPECT_LE(desk_->state().spent.size(), wire::kMaxStoredTokens / 2);
}

}  // namespace
}  // namespace nexar::runtime
