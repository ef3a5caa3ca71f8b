// Communicators that a member revokes.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

class RevokeTest : public VerdictsTest {
protected:
    static Bytes revoke(ContextId context) { return said(wire::Revoke{.context = context}); }
    static std::size_t revocations(const FakeLink& link) {
        return control_of<wire::Revoke>(link).size();
    }
    static void expect_revoked(const Asked& asked, std::string_view text = "revoked") {
        expect_ended_with(asked, Errc::revoked, text);
    }
};

TEST_F(RevokeTest, operations_end_here_and_members_hear_of_it) {
    const Asked& any = receive_in(*world_, {});
    const Asked& collective = barrier_in(*world_);
    const Asked& streaming = send(kHonest, 3000);
    const Asked& unrelated = receive_in(*staying_, {});
    engine_->revoke(*world_);
    pump();
    for (const Asked* asked : {&std::as_const(*waiting_), &any, &collective, &streaming}) {
        expect_revoked(*asked, "rank 0 revoked the communicator");
        EXPECT_EQ(asked->error()->rank(), public_rank(kMe));
    }
    EXPECT_EQ(unrelated.ended, 0);
    ASSERT_EQ(revocations(hostile_), 1U);
    ASSERT_EQ(revocations(honest_), 1U);
    EXPECT_EQ(control_of<wire::Revoke>(honest_)[0].context, kWorld);
    expect_revoked(receive_in(*world_, {}));
    expect_revoked(send(kHonest, 10));
    expect_revoked(barrier_in(*world_));
    engine_->revoke(*world_);
    EXPECT_EQ(revocations(honest_), 1U);
}

TEST_F(RevokeTest, revocation_of_a_peer_ends_operations_and_is_passed_on_once) {
    const Asked& any = receive_in(*world_, {});
    const Asked& unrelated = receive_in(*staying_, {});
    says(Lane::control, revoke(kWorld));
    for (const Asked* asked : {&std::as_const(*waiting_), &any}) {
        expect_revoked(*asked, "as rank 1 says");
        EXPECT_EQ(asked->error()->rank(), public_rank(kHostile));
    }
    EXPECT_EQ(unrelated.ended, 0);
    EXPECT_EQ(revocations(hostile_), 0U);
    EXPECT_EQ(revocations(honest_), 1U);
    honest_.arrive(Lane::control, revoke(kWorld));
    says(Lane::control, revoke(kWorld));
    engine_->revoke(*world_);
    pump();
    EXPECT_EQ(revocations(hostile_), 0U);
    EXPECT_EQ(revocations(honest_), 1U);
    EXPECT_FALSE(hostile_.closed());
}

TEST_F(RevokeTest, calls_go_on) {
    engine_->revoke(*world_);
    const Called& called = call(kHonest, 10);
    honest_.arrive(Lane::rpc, said(response(0, 0)));
    pump();
    EXPECT_EQ(called.ended, 1);
    EXPECT_FALSE(called.call.error);
}

TEST_F(RevokeTest, peer_that_connects_later_hears_of_it) {
    Context& wide = engine_->add_context(ContextId(40), std::array{node(0), node(1), node(3)}, kMe);
    engine_->revoke(wide);
    EXPECT_EQ(engine_->poll_wanted(), node(3));
    FakeLink late(port::LinkId(41), {.cluster = {}, .node = node(3), .incarnation = {}});
    late.come_up();
    engine_->handle(*late.poll_event());
    ASSERT_EQ(revocations(late), 1U);
    EXPECT_EQ(control_of<wire::Revoke>(late)[0].context, ContextId(40));
    engine_->close();
    late.go_down(Error(Errc::link_closed, "closed"));
    while (const auto event = late.poll_event()) engine_->handle(*event);
}

TEST_F(RevokeTest, peer_hears_of_it_even_after_the_communicator_was_ended_here) {
    Context& wide = engine_->add_context(ContextId(40), std::array{node(0), node(3)}, kMe);
    engine_->revoke(wide);
    engine_->end_context(wide);
    FakeLink late(port::LinkId(41), {.cluster = {}, .node = node(3), .incarnation = {}});
    late.come_up();
    engine_->handle(*late.poll_event());
    EXPECT_EQ(revocations(late), 1U);
    engine_->close();
    late.go_down(Error(Errc::link_closed, "closed"));
    while (const auto event = late.poll_event()) engine_->handle(*event);
}

TEST_F(RevokeTest, peer_that_can_be_reached_again_hears_of_it) {
    engine_->set_unreachable(node(1), Error(Errc::peer_unreachable, "the path is cut"));
    engine_->revoke(*world_);
    pump();
    EXPECT_EQ(revocations(hostile_), 0U);
    EXPECT_EQ(revocations(honest_), 1U);
    engine_->set_reachable(node(1));
    pump();
    EXPECT_EQ(revocations(hostile_), 1U);
}

TEST_F(RevokeTest, only_the_last_revocations_are_repeated) {
    constexpr std::uint64_t kMany = 200;
    for (std::uint64_t i = 0; i < kMany; ++i) {
        Context& made =
            engine_->add_context(ContextId(1000 + i), std::array{node(0), node(1)}, kMe);
        engine_->revoke(made);
        engine_->end_context(made);
    }
    pump();
    EXPECT_EQ(revocations(hostile_), kMany);
    EXPECT_LE(engine_->add_peer(node(1)).membership.revocations.size(), 64U);
    evict_hostile();
    EXPECT_TRUE(engine_->add_peer(node(1)).membership.revocations.empty());
}

TEST_F(RevokeTest, revocation_before_the_communicator_is_made_counts) {
    says(Lane::control, revoke(ContextId(40)));
    Context& made = engine_->add_context(ContextId(40), std::array{node(0), node(1), node(2)}, kMe);
    expect_revoked(receive_in(made, {}));
    EXPECT_EQ(revocations(honest_), 1U);
    EXPECT_EQ(revocations(hostile_), 0U);
}

TEST_F(RevokeTest, revocation_after_the_introduction_and_before_the_communicator_is_made_counts) {
    says(Lane::eager, begins(ContextId(40), kHostile));
    says(Lane::eager, eager(header(0, 5, 100, ContextId(40))));
    says(Lane::control, revoke(ContextId(40)));
    Context& made = engine_->add_context(ContextId(40), std::array{node(0), node(1), node(2)}, kMe);
    expect_revoked(receive_in(made, {}));
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(revocations(honest_), 1U);
}

TEST_F(RevokeTest, revocation_of_an_ended_communicator_is_ignored) {
    Context& made = engine_->add_context(ContextId(40), std::array{node(0), node(1)}, kMe);
    says(Lane::eager, begins(ContextId(40), kHostile, 2));
    pump();
    engine_->end_context(made);
    pump();
    says(Lane::control, revoke(ContextId(40)));
    expect_not_disconnected();
}

TEST_F(RevokeTest, peer_that_is_not_a_member_is_disconnected) {
    says(Lane::control, revoke(kStaying));
    expect_disconnected(Errc::protocol_violation, "of which it is not a member");
    expect_staying_works();
}

TEST_F(RevokeTest, peer_that_is_not_a_member_is_disconnected_when_the_communicator_is_made) {
    says(Lane::control, revoke(ContextId(40)));
    expect_not_disconnected();
    Context& made = engine_->add_context(ContextId(40), std::array{node(0), node(2)}, kMe);
    expect_disconnected(Errc::protocol_violation, "of which it is not a member");
    EXPECT_FALSE(made.over);
}

TEST_F(RevokeTest, flood_of_unknown_communicators_is_bounded) {
    constexpr std::uint64_t kMany = 10'000;
    for (std::uint64_t i = 0; i < kMany; ++i) {
        hostile_.arrive(Lane::control, revoke(ContextId(1000 + i)));
    }
    pump();
    expect_not_disconnected();
    EXPECT_LE(engine_->add_peer(node(1)).membership.early_revocations.size(), 256U);
    const std::array members{node(0), node(1)};
    EXPECT_FALSE(engine_->add_context(ContextId(1000), members, kMe).over);
    EXPECT_TRUE(engine_->add_context(ContextId(1000 + kMany - 1), members, kMe).over);
}

TEST_F(RevokeTest, messages_and_collectives_that_arrive_later_are_dropped) {
    engine_->revoke(*world_);
    for (std::uint64_t i = 0; i < 50; ++i) {
        honest_.arrive(Lane::eager, eager(header(honest_sequence_++, 5, 200)));
    }
    honest_.arrive(Lane::eager, said(wire::CollectiveHeader{.context = kWorld, .operation = 0}));
    pump();
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_FALSE(honest_.closed());
    expect_staying_works();
}

TEST_F(RevokeTest, loss_of_a_member_after_the_revocation_keeps_the_error) {
    engine_->revoke(*world_);
    evict_hostile();
    expect_revoked(receive_in(*world_, {}));
}

TEST_F(RevokeTest, revocation_after_the_loss_of_a_member_is_still_spread) {
    evict_hostile();
    engine_->revoke(*world_);
    pump();
    EXPECT_EQ(revocations(honest_), 1U);
    expect_lost(receive_in(*world_, {}));
}

}  // namespace
}  // namespace nexar::engine
