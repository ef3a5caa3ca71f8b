// Seeds that lose their state, return from a copy of it, or replace each other, on virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/seed/forget_members.hpp"
#include "unit/runtime/virtual_join_fixture.hpp"

namespace nexar::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class VirtualSeeds : public VirtualGrow {
protected:
    std::string copy_directory() const { return state_.path() + "/copy"; }
    void copy_state() const {
        fs::remove_all(copy_directory());
        fs::copy(state_directory(), copy_directory(), fs::copy_options::recursive);
        fs::permissions(copy_directory(), fs::perms::owner_all);
    }
    void restore_state() const {
        fs::remove_all(state_directory());
        fs::rename(copy_directory(), state_directory());
    }
    /// Starts a second seed with the CA of the first one.
    void start_second_seed() {
        SeedOptions options = seed_options_;
        options.second = true;
        options.ca_dir = state_directory();
        options.other_seeds = {sim::DatagramNet::address(1).text()};
        options.state_dir = state_.path() + "/second";
        second_.reset();
        second_.emplace(net_, options, Config::resolve(kSettings, {}).value(), 2);
    }
    bool all_name_the_witness(const Witness& witness, Duration at_most = 60s) {
        return world_.run_until(
            [&] {
                return std::ranges::all_of(
                    nodes_, [&](const auto& one) { return one->view()->witness == witness; });
            },
            at_most);
    }

    void forget(const std::vector<std::uint32_t>& ranks) const {
        const auto directory = security::StateDirectory::open(state_directory()).value();
        std::vector<Rank> lost;
        for (const std::uint32_t rank : ranks) lost.emplace_back(rank);
        const wire::StoredSeed kept = directory.seed().value().value();
        directory.keep(forget_members(kept, lost).value()).value();
    }

    std::optional<VirtualSeed> second_;
};

TEST_F(VirtualSeeds, a_restarted_seed_keeps_its_incarnation) {
    form(2);
    const Witness before = seed_->server().self();
    restart_seed();
    EXPECT_EQ(seed_->server().self(), before);
}

TEST_F(VirtualSeeds, a_restored_seed_votes_again_once_a_view_names_it) {
    form(2);
    const Witness before = seed_->server().self();
    copy_state();
    join(token(1));
    ASSERT_TRUE(all_have(3));
    nodes_.pop_back();
    ASSERT_TRUE(all_have(2));
    ASSERT_TRUE(seed_has(2));
    seed_.reset();
    restore_state();
    restart_seed();
    const Witness restored = seed_->server().self();
    EXPECT_EQ(restored.seed, before.seed);
    EXPECT_GT(restored.incarnation, before.incarnation);
    ASSERT_TRUE(all_name_the_witness(restored)) << seed_->server().status();
    EXPECT_TRUE(seed_has(2));
    nodes_.pop_back();
    EXPECT_TRUE(all_have(1)) << "with the vote of the restored seed";
}

TEST_F(VirtualSeeds, the_operator_can_say_that_the_state_was_restored) {
    form(2);
    const Witness before = seed_->server().self();
    seed_options_.restored = true;
    restart_seed();
    EXPECT_GT(seed_->server().self().incarnation, before.incarnation);
    ASSERT_TRUE(all_name_the_witness(seed_->server().self()));
}

TEST_F(VirtualSeeds, a_restored_seed_does_not_vote_twice_during_a_cut) {
    form(2);
    copy_state();
    VirtualJoiner& first = *nodes_[0];
    VirtualJoiner& other = *nodes_[1];
    // The first node and the seed evict the other one, which does not learn of it.
    net_.partition(other.host(), seed_->host());
    mesh_.cut(other.identity().node);
    ASSERT_TRUE(world_.run_until([&] { return first.is_member(1); }, 30s));
    const Epoch decided = first.view()->epoch;
    // The seed forgets its vote, and sees only the other node.
    seed_.reset();
    restore_state();
    restart_seed();
    net_.heal_all();
    net_.partition(first.host(), seed_->host());
    world_.run_for(60s);
    EXPECT_TRUE(other.is_member(2)) << "one old voter decides nothing";
    EXPECT_LT(other.view()->epoch, decided);
    net_.heal_all();
    mesh_.heal(other.identity().node);
    EXPECT_TRUE(world_.run_until([&] { return other.evicted(); }, 60s));
    EXPECT_TRUE(world_.run_until(
        [&] {
            return seed_->server().view() == first.view() &&
                   first.view()->witness == seed_->server().self();
        },
        60s));
    EXPECT_TRUE(first.is_member(1));
}

TEST_F(VirtualSeeds, a_member_that_was_cut_off_while_all_others_left_learns_that_it_was_evicted) {
    form(2);
    VirtualJoiner& other = *nodes_[1];
    net_.partition(other.host(), seed_->host());
    mesh_.cut(other.identity().node);
    ASSERT_TRUE(world_.run_until([&] { return nodes_[0]->is_member(1); }, 30s));
    nodes_[0]->leave();
    ASSERT_TRUE(world_.run_until([&] { return !seed_->server().view(); }, 30s));
    EXPECT_FALSE(other.evicted());
    net_.heal_all();
    mesh_.heal(other.identity().node);
    EXPECT_TRUE(world_.run_until([&] { return other.evicted(); }, 60s));
}

TEST_F(VirtualSeeds, a_seed_that_lost_its_state_learns_the_members_and_becomes_the_witness) {
    form(2);
    const Witness before = seed_->server().self();
    seed_.reset();
    fs::remove(state_directory() + "/seed");
    restart_seed();
    EXPECT_NE(seed_->server().self().seed, before.seed);
    ASSERT_TRUE(all_name_the_witness(seed_->server().self())) << seed_->server().status();
    ASSERT_TRUE(seed_has(2, 60s)) << seed_->server().status();
    join(token(1));
    ASSERT_TRUE(all_have(3));
}

TEST_F(VirtualSeeds, a_second_seed_becomes_witness_and_admits_nodes_when_the_first_is_gone) {
    seeds_ = {1, 2};
    seed_options_.other_seeds = {sim::DatagramNet::address(2).text()};
    form(2);
    start_second_seed();
    EXPECT_FALSE(second_->server().formed());
    world_.run_for(60s);
    EXPECT_EQ(nodes_[0]->view()->witness, seed_->server().self()) << "the first seed lives";
    seed_.reset();
    ASSERT_TRUE(all_name_the_witness(second_->server().self(), 120s)) << second_->server().status();
    join(second_->server().create_token({}).value());
    ASSERT_TRUE(all_have(3, 60s)) << second_->server().status();
    nodes_.pop_back();
    ASSERT_TRUE(all_have(2));
    nodes_.pop_back();
    ASSERT_TRUE(all_have(1)) << "with the vote of the second seed";
    // The first one returns with an old view: joiners go on to the second.
    const std::string join_string = second_->server().create_token({}).value();
    restart_seed();
    join(join_string);
    ASSERT_TRUE(all_have(2, 60s)) << second_->server().status();
}

TEST_F(VirtualSeeds, two_seeds_that_cannot_reach_each_other_never_split_the_cluster) {
    seeds_ = {1, 2};
    form(4);
    start_second_seed();
    net_.partition(seed_->host(), second_->host());
    // Two members see only the first seed, two only the second.
    for (std::size_t i = 0; i < 4; ++i) {
        net_.partition(nodes_[i]->host(), i < 2 ? second_->host() : seed_->host());
    }
    world_.run_for(90s);
    const View view = *nodes_[0]->view();
    for (const auto& node : nodes_) EXPECT_EQ(node->view(), view);
    EXPECT_EQ(view.members.size(), 4U);
    EXPECT_EQ(view.witness, seed_->server().self()) << "the member with the lowest rank hears it";
    // Only one of them reaches enough voters.
    const std::string first = token(1);
    const std::string second = second_->server().create_token({}).value();
    seeds_ = {1, 2};
    join(first);
    ASSERT_TRUE(all_have(5, 60s)) << seed_->server().status();
    VirtualJoiner waiting(net_, 99, second, &mesh_, {2});
    world_.run_for(30s);
    EXPECT_FALSE(waiting.view());
    EXPECT_FALSE(waiting.line().failure());
    EXPECT_THAT(waiting.line().news(), HasSubstr("members are connected to this seed, too few"));
    // The first seed ends, and all members go to the second.
    net_.heal_all();
    seed_.reset();
    ASSERT_TRUE(world_.run_until([&] { return waiting.is_member(6); }, 300s))
        << second_->server().status();
    EXPECT_EQ(waiting.view()->next_rank, Rank(6));
}

TEST_F(VirtualSeeds, survivors_continue_after_the_operator_forgot_the_majority) {
    form(3);
    nodes_.erase(nodes_.begin(), nodes_.begin() + 2);
    world_.run_for(20s);
    EXPECT_TRUE(nodes_.front()->is_member(3)) << "one of three voters decides nothing";
    seed_.reset();
    const Rank survivor = nodes_.front()->view()->find(nodes_.front()->identity().node)->rank;
    std::vector<std::uint32_t> lost;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        if (Rank(rank) != survivor) lost.push_back(rank);
    }
    forget(lost);
    restart_seed();
    ASSERT_TRUE(all_have(1, 60s)) << seed_->server().status();
    EXPECT_GT(nodes_.front()->view()->epoch, Epoch(kForgottenEpochs));
    join(token(1));
    ASSERT_TRUE(all_have(2));
}

TEST(ForgetMembers, raises_the_epoch_and_drops_the_votes) {
    wire::StoredSeed state{.seed = {std::byte{7}}, .incarnation = 3, .epoch = Epoch(9)};
    EXPECT_THAT(forget_members(state, {Rank(0)}).error().cause(), HasSubstr("no cluster"));
    wire::ViewFrame view{.epoch = Epoch(9), .witness = {std::byte{8}}, .next_rank = Rank(6)};
    for (const std::uint32_t rank : {1U, 4U, 5U}) {
        view.members.push_back(
            {.node = {static_cast<std::byte>(rank)}, .incarnation = 1, .rank = Rank(rank)});
    }
    view.spent = {{.token = {std::byte{1}}, .uses = 2}};
    state.view = {view};
    state.promised_round = 5;
    state.accepted_round = 4;
    state.accepted = {view};
    const auto unknown = forget_members(state, {Rank(1), Rank(2)});
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().cause(), HasSubstr("no member with rank 2; its ranks are: 1 4 5"));
    EXPECT_FALSE(forget_members(state, {Rank(1), Rank(1)}));
    const wire::StoredSeed next = forget_members(state, {Rank(1), Rank(5)}).value();
    EXPECT_EQ(next.epoch, Epoch(9 + kForgottenEpochs));
    EXPECT_EQ(next.view.front().epoch, next.epoch);
    ASSERT_EQ(next.view.front().members.size(), 1U);
    EXPECT_EQ(next.view.front().members.front().rank, Rank(4));
    EXPECT_EQ(next.view.front().next_rank, Rank(6));
    EXPECT_EQ(next.view.front().witness, state.seed);
    EXPECT_EQ(next.view.front().witness_incarnation, 3U);
    EXPECT_EQ(next.promised_round, 0U);
    EXPECT_EQ(next.accepted_round, 0U);
    EXPECT_TRUE(next.accepted.empty());
    const wire::StoredSeed none = forget_members(state, {Rank(1), Rank(4), Rank(5)}).value();
    EXPECT_TRUE(none.view.empty());
    EXPECT_EQ(none.spent, view.spent) << "tokens stay spent";
    EXPECT_EQ(none.epoch, Epoch(9 + kForgottenEpochs));
}

}  // namespace
}  // namespace nexar::runtime
