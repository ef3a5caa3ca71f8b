// Nodes that are no longer members: when the engine frees its record of them, and what still holds
// afterwards.

#include "engine/former_peers.hpp"

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

/// A view of these nodes, whose ranks are their numbers.
View view_of(std::uint64_t epoch, std::initializer_list<std::uint8_t> nodes) {
    View view{.epoch = Epoch(epoch), .next_rank = Rank(100)};
    for (const std::uint8_t number : nodes) {
        view.members.push_back({.node = node(number), .rank = Rank(number)});
    }
    return view;
}

class FormerPeersTest : public VerdictsTest {
protected:
    FormerPeersTest() {
        engine_->set_view(view_of(4, {0, 1, 2}));
        while (engine_->poll_hint()) {
        }
    }

    /// The members agree that the hostile peer is gone.
    void lose_hostile() {
        engine_->set_view(view_of(kLossEpoch.value(), {0, 2}));
        evict_hostile();
        next_epoch_ = kLossEpoch.value() + 1;
    }
    /// A view with the same members follows.
    void next_view() { engine_->set_view(view_of(next_epoch_++, {0, 2})); }
    void end_world() {
        pump();
        engine_->calls().set_world(*staying_);
        engine_->end_context(*world_);
        world_ = staying_;
        pump();
    }
    /// Nothing refers to the hostile peer any more.
    void forget_hostile() {
        lose_hostile();
        end_world();
        next_view();
    }

    Called& call_node(std::uint8_t number) {
        Called& called = called_.emplace_back();
        called.call.owner = static_cast<Asked*>(&called);
        called.call.to = Rank(number);
        called.call.node = node(number);
        called.call.name = "echo";
        engine_->start(*staying_, called.call);
        pump();
        return called;
    }

    std::uint64_t next_epoch_ = 0;
};

TEST_F(FormerPeersTest, lost_node_is_forgotten_when_its_last_communicator_has_ended) {
    lose_hostile();
    EXPECT_EQ(engine_->peers(), 2U);
    next_view();
    EXPECT_EQ(engine_->peers(), 2U) << "the world contains it";
    expect_lost(send(kHostile, 10));
    end_world();
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
    expect_staying_works();
}

TEST_F(FormerPeersTest, call_to_a_forgotten_node_fails_as_before) {
    forget_hostile();
    ASSERT_EQ(engine_->peers(), 1U);
    const Called& called = call_node(1);
    expect_ended_with(called, Errc::membership_changed, "the peer was lost in epoch 5");
    EXPECT_EQ(next_call(), nullptr) << "the call ran at the caller";
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
}

TEST_F(FormerPeersTest, call_to_a_node_that_nobody_remembers_does_not_run_at_the_caller) {
    const Called& called = call_node(77);
    expect_ended_with(called, Errc::membership_changed, "is not a member of epoch 4");
    EXPECT_EQ(next_call(), nullptr);
}

TEST_F(FormerPeersTest, communicator_with_a_forgotten_node_fails_at_once) {
    forget_hostile();
    constexpr ContextId kLater{33};
    Context& later = engine_->add_context(kLater, std::array{node(0), node(1), node(2)}, kMe);
    expect_lost(receive_in(later, {.source = kHonest, .tag = Tag(1)}));
    engine_->end_context(later);
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
}

TEST_F(FormerPeersTest, forgotten_node_cannot_connect_again) {
    forget_hostile();
    FakeLink again(port::LinkId(13), {.cluster = {}, .node = node(1), .incarnation = {}});
    again.come_up();
    while (const auto event = again.poll_event()) engine_->handle(*event);
    EXPECT_TRUE(again.closed());
    EXPECT_FALSE(engine_->is_connected(node(1)));
}

TEST_F(FormerPeersTest, forgotten_node_that_joins_again_is_a_peer_like_any_other) {
    forget_hostile();
    engine_->set_view(view_of(next_epoch_++, {0, 1, 2}));
    engine_->add_peer(node(1));
    FakeLink again(port::LinkId(13), {.cluster = {}, .node = node(1), .incarnation = {}});
    again.come_up();
    while (const auto event = again.poll_event()) engine_->handle(*event);
    EXPECT_FALSE(again.closed());
    EXPECT_TRUE(engine_->is_connected(node(1)));
    again.go_down(Error(Errc::link_closed, "closed"));
    while (const auto event = again.poll_event()) engine_->handle(*event);
}

TEST_F(FormerPeersTest, node_that_left_is_forgotten_too) {
    says(Lane::control, said(goodbye()));
    hostile_.go_down(Error(Errc::link_closed, "it closed the link"));
    pump();
    engine_->set_view(view_of(5, {0, 2}));
    next_epoch_ = 6;
    while (engine_->poll_hint()) {
    }
    end_world();
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
    expect_ended_with(call_node(1), Errc::link_closed, "the peer left the cluster");
}

TEST_F(FormerPeersTest, running_call_of_a_lost_node_keeps_it) {
    says(Lane::rpc, with_payload(request(0, 10)));
    InCall* const running = next_call();
    ASSERT_NE(running, nullptr);
    forget_hostile();
    EXPECT_EQ(engine_->peers(), 2U);
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    respond(*running, Bytes{});
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
}

TEST_F(FormerPeersTest, hint_that_nobody_has_polled_keeps_it) {
    break_hostile();
    forget_hostile();
    EXPECT_EQ(engine_->peers(), 2U);
    const auto hint = engine_->poll_hint();
    ASSERT_TRUE(hint);
    EXPECT_EQ(hint->node, node(1));
    next_view();
    EXPECT_EQ(engine_->peers(), 1U);
}

TEST_F(FormerPeersTest, what_a_lost_node_said_in_unknown_communicators_is_dropped) {
    constexpr ContextId kEarly{34};
    says(Lane::eager, begins(kEarly, kHostile));
    says(Lane::eager, eager(header(0, 5, 100, kEarly)));
    ASSERT_EQ(engine_->messages(), 1U);
    forget_hostile();
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(engine_->peers(), 1U);
}

TEST(FormerPeers, remember_the_last_ones) {
    FormerPeers former;
    const auto numbered = [](std::size_t number) {
        std::array<std::byte, NodeId::kBytes> bytes{};
        bytes[0] = std::byte(number % 256);
        bytes[1] = std::byte(number / 256);
        return NodeId(bytes);
    };
    for (std::size_t i = 0; i <= FormerPeers::kMost; ++i) former.add(numbered(i), Epoch(i + 1));
    EXPECT_EQ(former.find(numbered(0)), nullptr);
    for (const std::size_t i : {std::size_t{1}, FormerPeers::kMost}) {
        const auto* const found = former.find(numbered(i));
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->evicted, Epoch(i + 1));
    }
    // The newest entry counts, and one that is repeated displaces no other.
    former.add(numbered(1), std::nullopt);
    former.add(numbered(1), std::nullopt);
    EXPECT_EQ(former.find(numbered(1))->reason().code(), Errc::link_closed);
    EXPECT_NE(former.find(numbered(3)), nullptr);
}

}  // namespace
}  // namespace nexar::engine
