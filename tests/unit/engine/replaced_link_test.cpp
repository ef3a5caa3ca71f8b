// Two members whose link broke and was replaced: communicators of before keep the old record of the
// peer.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

class ReplacedLink : public VerdictsTest {
protected:
    explicit ReplacedLink(bool revoked = false) {
        View view{.epoch = Epoch(4)};
        for (std::uint8_t i = 0; i < 3; ++i) {
            view.members.push_back({.node = node(i), .rank = Rank(i)});
        }
        engine_->set_view(view);
        if (revoked) engine_->revoke(*world_);
        break_hostile();
        EXPECT_EQ(engine_->poll_wanted(), node(1));
        EXPECT_TRUE(engine_->awaits_link(node(1)));
        EXPECT_EQ(waiting_->ended, revoked ? 1 : 0) << "a verdict on the peer follows";
        next_.come_up();
        engine_->handle(*next_.poll_event());
        pump();
    }
    ~ReplacedLink() override {
        engine_->close();
        next_.go_down(Error(Errc::link_closed, "closed"));
        while (const auto event = next_.poll_event()) engine_->handle(*event);
    }

    void says_next(const Bytes& frame) {
        if (!std::exchange(spoken_, true)) {
            next_.arrive(
                Lane::control,
                said(wire::Preamble{.lane = wire::Lane::control, .context = {}, .sequence = {}}));
        }
        next_.arrive(Lane::control, frame);
        pump();
    }
    static Bytes revoke(ContextId context) { return said(wire::Revoke{.context = context}); }

    FakeLink next_{port::LinkId(41), {.cluster = {}, .node = node(1), .incarnation = {}}};
    bool spoken_ = false;
};

TEST_F(ReplacedLink, ends_what_was_in_flight_with_the_peer) {
    expect_ended_with(*waiting_, Errc::peer_unreachable, "broke and was replaced");
    expect_ended_with(send(kHostile, 10), Errc::peer_unreachable, "broke and was replaced");
    EXPECT_TRUE(engine_->is_connected(node(1)));
    expect_staying_works();
}

TEST_F(ReplacedLink, carries_communicators_that_are_made_now) {
    Context& made = engine_->add_context(ContextId(50), std::array{node(0), node(1)}, kMe);
    EXPECT_EQ(send_in(made, Rank(1), 10).ended, 1);
    EXPECT_FALSE(next_.written(Lane::eager).empty());
}

TEST_F(ReplacedLink, carries_revocations_of_communicators_of_before) {
    const Asked& other = receive(kHonest, 5);
    says_next(revoke(kWorld));
    EXPECT_FALSE(next_.closed()) << *next_.closed();
    expect_ended_with(other, Errc::revoked, "as rank 1 says");
    EXPECT_EQ(control_of<wire::Revoke>(honest_).size(), 1U) << "the others hear of it";
}

TEST_F(ReplacedLink, tells_the_peer_of_revocations_of_communicators_of_before) {
    engine_->revoke(*world_);
    pump();
    ASSERT_EQ(control_of<wire::Revoke>(next_).size(), 1U);
    EXPECT_EQ(control_of<wire::Revoke>(next_)[0].context, kWorld);
}

class ReplacedAfterRevocation : public ReplacedLink {
protected:
    ReplacedAfterRevocation() : ReplacedLink(true) {}
};

TEST_F(ReplacedAfterRevocation, tells_the_peer_again) {
    ASSERT_EQ(control_of<wire::Revoke>(next_).size(), 1U);
    EXPECT_EQ(control_of<wire::Revoke>(next_)[0].context, kWorld);
}

TEST_F(ReplacedLink, is_cut_off_if_the_peer_revokes_a_communicator_of_others) {
    says_next(revoke(kStaying));
    EXPECT_TRUE(next_.closed());
}

}  // namespace
}  // namespace nexar::engine
