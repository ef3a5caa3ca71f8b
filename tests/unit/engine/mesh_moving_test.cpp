// One mesh whose link to a peer moves between the direct path and a tunnel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/one_mesh.hpp"

namespace nexar::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

/// A pair of neighbours with a link that is up.
class MovingLink : public OneMesh {
protected:
    explicit MovingLink(bool tunnels = true) : OneMesh({.tunnels = tunnels}) {
        node_.engine().set_view(view_);
        node_.engine().await_verdicts(true);
        node_.adopt(view_);
    }

    void connect() {
        link_ = &up(0);
        node_.hears_welcome(*link_, Rank(1));
        settle_down();
    }
    void accept(const Address& from) {
        link_ = &node_.accept(identity(0), from);
        node_.hears_hello(*link_);
        node_.hears_confirm(*link_);
        down(0);
        settle_down();
    }
    void settle_down() {
        ASSERT_TRUE(node_.mesh().complete());
        node_.run(seconds(2));
        dials_ = dialed().size();
    }

    void set_silent(bool silent) {
        node_.engine().set_silent(node(0), silent);
        node_.pass(Duration::zero());
    }
    /// Adopts the next view, in which the peer is a neighbour or not.
    void adopt_next(bool neighbours) {
        view_.epoch = Epoch(view_.epoch.value() + 1);
        node_.engine().set_view(view_);
        std::vector<NodeId> all;
        if (neighbours) all.push_back(node(0));
        node_.mesh().set_neighbours(all);
        node_.adopt(view_);
    }
    /// The link moved to the tunnel, where it works.
    void hide_in_tunnel() {
        set_silent(true);
        node_.moves(*link_, at_tunnel);
        set_silent(false);
    }
    std::size_t new_dials() const { return dialed().size() - dials_; }
    bool is_replaced() const { return link_->closed() || link_->dropped(); }
    std::optional<PathRequest> request() { return node_.mesh().poll_path_request(); }
    void asked(bool direct) { node_.mesh().on_path_request(node_.now(), node(0), direct); }

    FakeLink* link_ = nullptr;
    std::size_t dials_ = 0;
};

TEST_F(MovingLink, moves_to_the_tunnel_when_it_does_not_seem_to_work) {
    connect();
    set_silent(true);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel));
    EXPECT_FALSE(node_.report().tunnel);
    const std::uint64_t changes = node_.mesh().changes();
    node_.moves(*link_, at_tunnel);
    EXPECT_TRUE(node_.report().tunnel);
    EXPECT_NE(node_.mesh().changes(), changes);
    set_silent(false);
    node_.run(milliseconds(900));
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(is_replaced());
    EXPECT_TRUE(node_.engine().is_connected(node(0)));
}

TEST_F(MovingLink, moves_when_it_has_stalled) {
    connect();
    node_.handle({.link = link_->id(), .what = port::Stalled{.stalled = true}});
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel));
    node_.moves(*link_, at_tunnel);
    node_.handle({.link = link_->id(), .what = port::Stalled{.stalled = false}});
    node_.run(milliseconds(900));
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(is_replaced());
}

TEST_F(MovingLink, is_replaced_when_the_peer_does_not_answer_in_the_tunnel) {
    connect();
    set_silent(true);
    for (int i = 0; i < 3; ++i) {
        node_.run(milliseconds(300));
        node_.fails_to_move(*link_, at_tunnel);
        EXPECT_EQ(new_dials(), 0U) << "it tries again";
    }
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_tunnel, at_tunnel, at_tunnel));
    node_.run(milliseconds(100));
    EXPECT_EQ(new_dials(), 1U);
    FakeLink& second = up(dials_);
    node_.run(milliseconds(100));
    EXPECT_TRUE(link_->dropped());
    down(0);
    EXPECT_TRUE(said_hello(second));
    node_.hears_welcome(second, Rank(1));
    EXPECT_TRUE(node_.engine().is_connected(node(0)));
    node_.run(seconds(60));
    EXPECT_FALSE(second.closed());
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(MovingLink, is_replaced_at_once_when_it_cannot_move) {
    connect();
    set_silent(true);
    EXPECT_EQ(new_dials(), 0U);
    node_.fails_to_move(*link_, at_tunnel);
    EXPECT_EQ(new_dials(), 1U);
}

TEST_F(MovingLink, is_replaced_when_nothing_is_heard_of_its_move) {
    connect();
    set_silent(true);
    node_.run(milliseconds(999));
    EXPECT_EQ(new_dials(), 0U);
    node_.run(milliseconds(1));
    EXPECT_EQ(new_dials(), 1U);
    const FakeLink& second = up(dials_);
    node_.moves(*link_, at_tunnel);
    set_silent(false);
    EXPECT_EQ(second.closed(), "the first link works again");
    EXPECT_FALSE(is_replaced());
}

TEST_F(MovingLink, is_replaced_when_it_does_not_work_in_the_tunnel_either) {
    connect();
    set_silent(true);
    node_.moves(*link_, at_tunnel);
    node_.run(milliseconds(499));
    EXPECT_EQ(new_dials(), 0U) << "the next heartbeat may be on its way";
    node_.run(milliseconds(1));
    EXPECT_EQ(new_dials(), 1U);
}

TEST_F(MovingLink, stays_when_it_works_again_while_it_moves) {
    connect();
    set_silent(true);
    set_silent(false);
    node_.fails_to_move(*link_, at_tunnel);
    node_.run(seconds(60));
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(node_.report().tunnel);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel));
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(MovingLink, returns_to_the_direct_path_when_it_works_again) {
    connect();
    hide_in_tunnel();
    node_.run(milliseconds(999));
    EXPECT_EQ(link_->moves.size(), 1U);
    node_.run(milliseconds(1));
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_first));
    node_.fails_to_move(*link_, at_first);
    EXPECT_EQ(link_->moves.back(), at_second);
    node_.fails_to_move(*link_, at_second);
    EXPECT_EQ(link_->moves.size(), 3U) << "the loopback address is that of another host";
    node_.run(seconds(2));
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_first, at_second, at_first));
    node_.moves(*link_, at_first);
    EXPECT_FALSE(node_.report().tunnel);
    node_.run(seconds(100));
    EXPECT_EQ(link_->moves.size(), 4U);
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(MovingLink, tries_the_direct_path_when_the_tunnel_does_not_seem_to_work) {
    connect();
    hide_in_tunnel();
    node_.run(milliseconds(600));
    set_silent(true);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_first));
    node_.moves(*link_, at_first);
    set_silent(false);
    node_.run(seconds(60));
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(is_replaced());
}

TEST_F(MovingLink, that_the_peer_dialed_is_moved_by_the_peer) {
    accept(at_first);
    set_silent(true);
    const auto asks = request();
    ASSERT_TRUE(asks);
    EXPECT_EQ(asks->to, node(0));
    EXPECT_FALSE(asks->direct);
    EXPECT_FALSE(request()) << "once";
    EXPECT_THAT(link_->moves, IsEmpty());
    node_.run(milliseconds(500));
    node_.moves(*link_, at_tunnel);
    EXPECT_TRUE(node_.report().tunnel);
    set_silent(false);
    node_.run(seconds(60));
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(is_replaced());
    EXPECT_FALSE(request());
    EXPECT_FALSE(node_.mesh().next_deadline()) << "the peer tries the direct path";
}

TEST_F(MovingLink, is_replaced_when_the_peer_does_not_move_it) {
    accept(at_first);
    set_silent(true);
    node_.run(milliseconds(999));
    EXPECT_EQ(new_dials(), 0U);
    node_.run(milliseconds(1));
    EXPECT_EQ(new_dials(), 1U);
}

TEST_F(MovingLink, moves_when_the_peer_asks_for_it) {
    connect();
    node_.mesh().on_path_request(node_.now(), node(9), false);
    EXPECT_THAT(link_->moves, IsEmpty()) << "that node is not a member";
    asked(false);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel));
    node_.moves(*link_, at_tunnel);
    node_.run(milliseconds(200));
    asked(true);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_first));
    node_.moves(*link_, at_first);
    node_.run(seconds(60));
    EXPECT_EQ(link_->moves.size(), 2U);
    EXPECT_EQ(new_dials(), 0U);
}

TEST_F(MovingLink, a_peer_that_asks_all_the_time_causes_few_moves) {
    connect();
    for (int i = 0; i < 1000; ++i) {
        asked(i % 2 == 1);
        if (!link_->moves.empty()) node_.moves(*link_, Address(link_->moves.back()));
        node_.pass(milliseconds(1));
    }
    EXPECT_LE(link_->moves.size(), 11U);
}

TEST_F(MovingLink, passes_events_of_its_path_on_to_the_engine) {
    connect();
    set_silent(true);
    EXPECT_FALSE(node_.mesh().handle(node_.now(),
                                     {.link = link_->id(), .what = port::PathFailed{at_tunnel}}));
    EXPECT_FALSE(node_.mesh().handle(node_.now(),
                                     {.link = link_->id(), .what = port::PathChanged{at_tunnel}}));
    EXPECT_TRUE(node_.report().tunnel);
}

TEST_F(MovingLink, moves_where_it_belongs_when_the_topology_changes) {
    connect();
    adopt_next(false);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel));
    node_.moves(*link_, at_tunnel);
    EXPECT_TRUE(node_.report().tunnel);
    node_.run(seconds(60));
    EXPECT_EQ(link_->moves.size(), 1U);
    EXPECT_FALSE(node_.mesh().next_deadline());
    adopt_next(true);
    EXPECT_THAT(link_->moves, ElementsAre(at_tunnel, at_first));
    node_.moves(*link_, at_first);
    EXPECT_FALSE(node_.report().tunnel);
    EXPECT_EQ(new_dials(), 0U);
    EXPECT_FALSE(is_replaced());
}

TEST_F(MovingLink, tries_the_direct_path_again_with_every_view) {
    connect();
    hide_in_tunnel();
    for (int i = 0; i < 8; ++i) {
        node_.run(seconds(40));
        node_.fails_to_move(*link_, Address(link_->moves.back()));
        node_.fails_to_move(*link_, Address(link_->moves.back()));
    }
    const std::size_t moves = link_->moves.size();
    adopt_next(true);
    ASSERT_EQ(link_->moves.size(), moves + 1);
    EXPECT_EQ(link_->moves.back(), at_first);
}

TEST_F(MovingLink, asks_the_peer_that_dialed_it_when_the_two_become_neighbours) {
    accept(at_tunnel);
    EXPECT_TRUE(node_.report().tunnel);
    EXPECT_FALSE(request());
    adopt_next(true);
    const auto asks = request();
    ASSERT_TRUE(asks);
    EXPECT_TRUE(asks->direct);
    adopt_next(false);
    EXPECT_FALSE(request());
    EXPECT_THAT(link_->moves, IsEmpty());
}

TEST_F(MovingLink, is_not_used_after_it_has_ended) {
    connect();
    hide_in_tunnel();
    node_.run(seconds(1));
    const std::size_t moves = link_->moves.size();
    link_->moves.clear();
    down(0, "broken");
    EXPECT_FALSE(node_.report().tunnel);
    EXPECT_EQ(moves, 2U);
    asked(true);
    node_.run(seconds(5));
    EXPECT_THAT(link_->moves, IsEmpty());
    EXPECT_GE(new_dials(), 1U) << "another link";
}

TEST_F(MovingLink, forgets_links_of_members_that_have_left) {
    connect();
    view_.epoch = Epoch(2);
    view_.members.erase(view_.members.begin());
    node_.adopt(view_);
    EXPECT_FALSE(node_.mesh().handle(node_.now(),
                                     {.link = link_->id(), .what = port::PathFailed{at_tunnel}}));
    down(0);
    EXPECT_FALSE(node_.mesh().next_deadline());
}

class LinkWithoutTunnel : public MovingLink {
protected:
    LinkWithoutTunnel() : MovingLink(false) {}
};

TEST_F(LinkWithoutTunnel, is_replaced_and_never_moved) {
    connect();
    set_silent(true);
    EXPECT_EQ(new_dials(), 1U);
    node_.run(seconds(10));
    EXPECT_THAT(dialed(), Not(Contains(at_tunnel.text())));
    adopt_next(false);
    asked(false);
    EXPECT_THAT(link_->moves, IsEmpty());
}

}  // namespace
}  // namespace nexar::engine
