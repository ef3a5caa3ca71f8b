// One mesh in which not every member is a neighbour: whom it dials, where, and when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/one_mesh.hpp"

namespace nexar::engine {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NeighbourMesh : public OneMesh {
protected:
    NeighbourMesh() : OneMesh({.tunnels = true}) {}
};

TEST_F(NeighbourMesh, dials_the_tunnel_of_a_neighbour_that_does_not_answer) {
    node_.adopt(view_);
    node_.run(milliseconds(999));
    EXPECT_THAT(dialed(), ElementsAre(at_first.text(), at_second.text(), at_third.text()));
    node_.run(milliseconds(1));
    ASSERT_GE(dialed().size(), 4U);
    EXPECT_EQ(dialed()[3], at_tunnel.text());
    FakeLink& tunnel = up(3);
    EXPECT_FALSE(said_hello(tunnel));
    node_.run(milliseconds(100));
    EXPECT_TRUE(said_hello(tunnel));
    node_.hears_welcome(tunnel, Rank(1));
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_TRUE(node_.report().tunnel);
    node_.run(seconds(1));
    EXPECT_THAT(tunnel.moves, ElementsAre(at_first)) << "it belongs on the direct path";
}

TEST_F(NeighbourMesh, dials_the_tunnel_at_once_when_all_addresses_have_failed) {
    node_.adopt(view_);
    for (std::size_t i = 0; i < 3; ++i) down(i);
    EXPECT_THAT(dialed(),
                ElementsAre(at_first.text(), at_second.text(), at_third.text(), at_tunnel.text()));
    EXPECT_EQ(since_start(3), Duration::zero());
    FakeLink& tunnel = up(3);
    EXPECT_TRUE(said_hello(tunnel));
}

TEST_F(NeighbourMesh, dials_the_tunnel_sooner_when_a_link_was_lost) {
    node_.engine().set_view(view_);
    node_.engine().await_verdicts(true);
    node_.adopt(view_);
    node_.hears_welcome(up(0), Rank(1));
    down(0, "broken");
    while (dialed().size() == 1) node_.run(milliseconds(1));
    const TimePoint begun = node_.now();
    while (dialed().back() != at_tunnel.text()) node_.run(milliseconds(1));
    EXPECT_EQ(node_.now() - begun, milliseconds(200));
}

TEST_F(NeighbourMesh, prefers_a_direct_address_that_answers_within_the_grace_period) {
    node_.adopt(view_);
    node_.run(seconds(1));
    FakeLink& tunnel = up(3);
    node_.run(milliseconds(50));
    FakeLink& first = up(0);
    EXPECT_TRUE(said_hello(first));
    EXPECT_EQ(tunnel.closed(), "another address was better");
}

/// Node 1, whose only neighbour is node 2. Node 0 can be reached through tunnels.
class SparseMesh : public ::testing::Test {
protected:
    explicit SparseMesh(bool tunnels = true) : node_(1, view_, {.tunnels = tunnels}) {
        node_.mesh().set_addresses({at_own});
        node_.engine().set_view(view_);
        node_.engine().await_verdicts(true);
    }
    /// The node outlives the send, which must end first.
    ~SparseMesh() override {
        node_.close();
        node_.engine().close();
        while (node_.engine().poll_done() != nullptr) {
        }
    }

    using Nodes = std::vector<NodeId>;
    void adopt(const std::optional<Nodes>& neighbours) {
        node_.mesh().set_neighbours(neighbours);
        node_.adopt(view_);
    }
    void adopt_next(const std::optional<Nodes>& neighbours) {
        view_.epoch = Epoch(view_.epoch.value() + 1);
        node_.engine().set_view(view_);
        adopt(neighbours);
    }
    /// Sends something to node 0.
    void send() {
        send_.to = Rank(0);
        send_.tag = Tag(1);
        send_.content = {&content_, 1};
        node_.engine().start(node_.world(), send_);
        node_.pass({});
    }
    std::vector<std::string> dialed(unsigned peer) const {
        std::vector<std::string> texts;
        for (const auto& dial : node_.dials()) {
            if (dial.node == node(peer)) texts.push_back(dial.to.text());
        }
        return texts;
    }
    /// Brings up the last dial of a peer.
    FakeLink& up(unsigned peer) {
        port::LinkId last{};
        for (const auto& dial : node_.dials()) {
            if (dial.node == node(peer)) last = dial.id;
        }
        return node_.up(last, identity(peer));
    }
    void connect_neighbour() {
        FakeLink& link = node_.accept(identity(2), at_second);
        node_.hears_hello(link);
        node_.hears_confirm(link);
    }

    View view_ = view_of({{at_first}, {at_own}, {at_second}});
    MeshNode node_;
    SendOperation send_{};
    int value_ = 5;
    port::ConstBytes content_ = std::as_bytes(std::span(&value_, 1));
};

TEST_F(SparseMesh, dials_only_neighbours_and_is_complete_when_they_are_connected) {
    adopt(Nodes{node(2)});
    EXPECT_FALSE(node_.mesh().complete());
    connect_neighbour();
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_FALSE(node_.report(0).neighbour);
    EXPECT_TRUE(node_.report(1).neighbour);
    node_.run(seconds(100));
    EXPECT_THAT(dialed(0), IsEmpty());
    EXPECT_FALSE(node_.mesh().next_deadline());
    EXPECT_EQ(node_.mesh().connected(), 1U);
}

TEST_F(SparseMesh, dials_others_in_the_tunnel_when_something_is_sent_to_them) {
    adopt(Nodes{node(2)});
    connect_neighbour();
    node_.run(seconds(10));
    send();
    EXPECT_THAT(dialed(0), ElementsAre(at_tunnel.text()));
    node_.run(seconds(10));
    EXPECT_THAT(dialed(0), Each(at_tunnel.text()));
    FakeLink& link = up(0);
    node_.run(milliseconds(100));
    EXPECT_TRUE(said_hello(link));
    node_.hears_welcome(link, Rank(1));
    EXPECT_TRUE(node_.report(0).connected);
    EXPECT_TRUE(node_.report(0).tunnel);
    node_.run(seconds(100));
    EXPECT_THAT(link.moves, IsEmpty()) << "it belongs in the tunnel";
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(SparseMesh, accepts_the_link_of_a_member_that_is_not_a_neighbour) {
    adopt(Nodes{node(2)});
    FakeLink& link = node_.accept(identity(0), at_tunnel);
    node_.hears_hello(link);
    EXPECT_TRUE(said_welcome(link));
    node_.hears_confirm(link);
    EXPECT_TRUE(node_.report(0).connected);
    EXPECT_TRUE(node_.report(0).tunnel);
    EXPECT_FALSE(node_.mesh().complete()) << "the neighbour is missing";
}

TEST_F(SparseMesh, replaces_a_tunnel_that_does_not_work_by_another_one) {
    adopt(Nodes{node(2)});
    connect_neighbour();
    send();
    FakeLink& link = up(0);
    node_.hears_welcome(link, Rank(1));
    node_.engine().set_silent(node(0), true);
    node_.pass(Duration::zero());
    EXPECT_THAT(link.moves, IsEmpty());
    EXPECT_THAT(dialed(0), ElementsAre(at_tunnel.text(), at_tunnel.text()));
}

TEST_F(SparseMesh, a_neighbour_that_leaves_before_others_do_is_a_failure_and_others_are_not) {
    adopt(Nodes{node(2)});
    send();
    node_.hears(up(0), wire::ErrorReport{.code = Errc::closed, .text = "the node was closed"});
    EXPECT_FALSE(node_.mesh().failure());
    node_.hears(node_.accept(identity(2)),
                wire::ErrorReport{.code = Errc::closed, .text = "the node was closed"});
    EXPECT_TRUE(node_.mesh().failure());
}

TEST_F(SparseMesh, dials_a_member_that_becomes_a_neighbour) {
    adopt(Nodes{node(2)});
    connect_neighbour();
    adopt_next(Nodes{node(0), node(2)});
    EXPECT_FALSE(node_.mesh().complete());
    EXPECT_THAT(dialed(0), ElementsAre(at_first.text()));
}

TEST_F(SparseMesh, a_member_that_becomes_a_neighbour_is_not_awaited_in_the_tunnel_any_more) {
    adopt(Nodes{node(2)});
    connect_neighbour();
    send();
    ASSERT_THAT(dialed(0), ElementsAre(at_tunnel.text()));
    const port::LinkId tunnel = node_.dials().back().id;
    adopt_next(std::nullopt);
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(tunnel));
    node_.down(tunnel);
    EXPECT_THAT(dialed(0), ElementsAre(at_tunnel.text(), at_first.text()));
}

TEST_F(SparseMesh, stops_dialing_a_member_that_is_not_a_neighbour_any_more) {
    adopt(std::nullopt);
    ASSERT_THAT(dialed(0), ElementsAre(at_first.text()));
    const port::LinkId direct = node_.dials().front().id;
    adopt_next(Nodes{node(2)});
    EXPECT_THAT(node_.dialer().abandoned, Contains(direct));
    node_.down(direct);
    node_.run(seconds(10));
    EXPECT_EQ(dialed(0).size(), 1U) << "nothing was sent to it";
    send();
    EXPECT_THAT(dialed(0), ElementsAre(at_first.text(), at_tunnel.text()));
}

TEST_F(SparseMesh, completes_a_handshake_that_a_change_of_the_topology_overtakes) {
    adopt(std::nullopt);
    FakeLink& link = up(0);
    ASSERT_TRUE(said_hello(link));
    adopt_next(Nodes{node(2)});
    EXPECT_FALSE(link.closed());
    node_.hears_welcome(link, Rank(1));
    EXPECT_TRUE(node_.report(0).connected);
    node_.run(seconds(1));
    EXPECT_THAT(link.moves, ElementsAre(at_tunnel));
}

TEST_F(SparseMesh, a_handshake_that_fails_after_such_a_change_is_not_repeated) {
    adopt(std::nullopt);
    FakeLink& link = up(0);
    ASSERT_TRUE(said_hello(link));
    adopt_next(Nodes{node(2)});
    node_.down(link.id());
    node_.run(seconds(10));
    EXPECT_EQ(dialed(0).size(), 1U);
    FakeLink& offered = node_.accept(identity(0), at_tunnel);
    node_.hears_hello(offered);
    EXPECT_TRUE(said_welcome(offered));
}

class SparseMeshWithoutMoves : public SparseMesh {
protected:
    SparseMeshWithoutMoves() : SparseMesh(false) {}
};

TEST_F(SparseMeshWithoutMoves, still_reaches_others_through_tunnels_only) {
    adopt(Nodes{node(2)});
    connect_neighbour();
    node_.run(seconds(10));
    EXPECT_THAT(dialed(0), IsEmpty());
    send();
    EXPECT_THAT(dialed(0), ElementsAre(at_tunnel.text()));
}

}  // namespace
}  // namespace nexar::engine
