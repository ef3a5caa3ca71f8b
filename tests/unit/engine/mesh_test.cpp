// One mesh against peers that the test plays: which addresses it dials when, and which peers it
// accepts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "unit/engine/one_mesh.hpp"

namespace nexar::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(OneMesh, tries_the_best_address_first_and_the_others_in_parallel) {
    node_.adopt(view_);
    EXPECT_THAT(dialed(), ElementsAre(at_first.text()));
    EXPECT_EQ(node_.dials()[0].node, node(0));
    node_.run(milliseconds(49));
    EXPECT_EQ(dialed().size(), 1U);
    node_.run(milliseconds(200));
    EXPECT_THAT(dialed(), ElementsAre(at_first.text(), at_second.text(), at_third.text()));
    EXPECT_EQ(since_start(1), milliseconds(50));
    EXPECT_EQ(since_start(2), milliseconds(100));
}

TEST_F(OneMesh, tries_the_next_address_at_once_when_one_fails) {
    node_.dialer().refuses.insert(at_first.text());
    node_.adopt(view_);
    EXPECT_THAT(dialed(), ElementsAre(at_second.text()));
    down(0);
    EXPECT_THAT(dialed(), ElementsAre(at_second.text(), at_third.text()));
    EXPECT_EQ(since_start(1), Duration::zero());
}

TEST_F(OneMesh, uses_the_first_address_that_answers_and_tries_no_other) {
    node_.adopt(view_);
    FakeLink& link = up(0);
    EXPECT_TRUE(said_hello(link));
    EXPECT_FALSE(node_.mesh().complete());
    node_.hears_welcome(link, Rank(1));
    EXPECT_TRUE(said_confirm(link));
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_EQ(node_.report().address, at_first);
    EXPECT_TRUE(node_.report().dialed);
    node_.run(seconds(30));
    EXPECT_EQ(dialed().size(), 1U);
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(OneMesh, a_better_address_that_comes_up_within_the_grace_period_wins) {
    node_.adopt(view_);
    node_.run(milliseconds(60));
    node_.pass(milliseconds(5));
    FakeLink& second = up(1);
    node_.run(milliseconds(99));
    EXPECT_FALSE(said_hello(second));
    FakeLink& first = up(0);
    EXPECT_TRUE(said_hello(first));
    EXPECT_FALSE(said_hello(second));
    EXPECT_EQ(second.closed(), "another address was better");
    node_.hears_welcome(first, Rank(1));
    EXPECT_EQ(node_.report().address, at_first);
    EXPECT_EQ(node_.report().took, milliseconds(164));
    EXPECT_THAT(node_.report().why, HasSubstr(at_second.text() + ": answered in 15.0 ms"));
}

TEST_F(OneMesh, does_not_wait_for_a_better_address_after_the_grace_period) {
    node_.adopt(view_);
    node_.run(milliseconds(60));
    FakeLink& second = up(1);
    node_.run(milliseconds(100));
    EXPECT_TRUE(said_hello(second));
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0)));
    // The mesh closes an abandoned link that comes up anyway.
    FakeLink& first = up(0);
    EXPECT_EQ(first.closed(), "this link is no longer needed");
    node_.hears_welcome(second, Rank(1));
    EXPECT_EQ(node_.report().address, at_second);
    EXPECT_THAT(node_.report().why, HasSubstr(at_first.text() + ": no answer in 160.0 ms"));
}

TEST_F(OneMesh, retries_after_growing_pauses_when_no_address_answers) {
    view_ = view_of({{at_first}, {at_own}});
    node_.adopt(view_);
    std::vector<Duration> pauses;
    for (std::size_t round = 0; round < 7; ++round) {
        const TimePoint failed = node_.now();
        down(round, "nobody there");
        EXPECT_EQ(node_.dials().size(), round + 1);
        EXPECT_THAT(node_.report().why, HasSubstr(at_first.text() + ": nobody there"));
        while (node_.dials().size() < round + 2) node_.run(milliseconds(1));
        pauses.push_back(node_.dials().back().at - failed);
    }
    EXPECT_THAT(pauses, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                    milliseconds(800), milliseconds(1600), milliseconds(2000),
                                    milliseconds(2000)));
}

TEST_F(OneMesh, tries_the_next_address_when_the_chosen_link_breaks) {
    node_.adopt(view_);
    FakeLink& link = up(0);
    EXPECT_TRUE(said_hello(link));
    down(0, "broken");
    EXPECT_THAT(dialed(), ElementsAre(at_first.text(), at_second.text()));
    node_.hears_welcome(up(1), Rank(1));
    EXPECT_EQ(node_.report().address, at_second);
    EXPECT_THAT(node_.report().why, HasSubstr("broken"));
}

TEST_F(OneMesh, does_not_spin_while_it_waits_for_an_answer) {
    node_.adopt(view_);
    up(0);
    node_.run(seconds(60));  // asserts that deadlines move
    EXPECT_EQ(dialed().size(), 1U);
    EXPECT_FALSE(node_.mesh().next_deadline());
}

TEST_F(OneMesh, refuses_a_welcome_addressed_to_another_rank) {
    node_.adopt(view_);
    FakeLink& link = up(0);
    node_.hears_welcome(link, Rank(0));
    EXPECT_THAT(link.closed().value_or(""), HasSubstr("rank 0"));
    EXPECT_FALSE(node_.mesh().complete());
}

TEST_F(OneMesh, drops_a_link_that_does_not_begin_with_a_hello) {
    node_.adopt(view_);
    FakeLink& garbage = node_.accept(identity(0));
    garbage.arrive(Lane::control, Bytes(64, std::byte{0xEE}));
    EXPECT_TRUE(garbage.closed().has_value());
    FakeLink& early = node_.accept(identity(0));
    node_.hears_welcome(early, Rank(1));
    EXPECT_THAT(early.closed().value_or(""), HasSubstr("before the hello and welcome"));
    FakeLink& twice = node_.accept(identity(0));
    twice.arrive(Lane::control, said(wire::Preamble{.lane = wire::Lane::eager}));
    EXPECT_TRUE(twice.closed().has_value());
    EXPECT_FALSE(node_.mesh().complete());
}

TEST_F(OneMesh, refuses_another_incarnation_of_a_member) {
    node_.adopt(view_);
    FakeLink& link = node_.accept(identity(0, 2));
    node_.hears_hello(link);
    EXPECT_THAT(link.closed().value_or(""), HasSubstr("incarnation"));
    EXPECT_FALSE(node_.mesh().complete());
}

TEST_F(OneMesh, refuses_an_unsupported_protocol_version) {
    node_.adopt(view_);
    FakeLink& link = node_.accept(identity(0));
    node_.hears(link, wire::Hello{.min_version = wire::kProtocolVersion + 1,
                                  .max_version = wire::kProtocolVersion + 2,
                                  .epoch = Epoch(1),
                                  .software = "test"});
    EXPECT_THAT(link.closed().value_or(""), HasSubstr("protocol version"));
}

TEST_F(OneMesh, refuses_a_node_that_is_not_in_the_view_of_its_epoch) {
    node_.adopt(view_);
    FakeLink& same = node_.accept(identity(5));
    node_.hears_hello(same, 1);
    EXPECT_EQ(same.closed(), "you are not a member of the current view");
    FakeLink& newer = node_.accept(identity(6));
    node_.hears_hello(newer, 2);
    EXPECT_FALSE(newer.closed());
}

TEST_F(OneMesh, drops_links_that_wait_too_long_for_a_view_or_stay_silent) {
    node_.adopt(view_);
    FakeLink& stranger = node_.accept(identity(6));
    node_.hears_hello(stranger, 2);
    FakeLink& silent = node_.accept(identity(0));
    node_.run(milliseconds(9999));
    EXPECT_FALSE(stranger.closed());
    EXPECT_FALSE(silent.closed());
    node_.run(milliseconds(1));
    EXPECT_EQ(stranger.closed(), "no view contains your node");
    EXPECT_EQ(silent.closed(), "you did not send a hello in time");
}

TEST_F(OneMesh, drops_the_oldest_links_when_too_many_wait_for_a_view) {
    std::vector<FakeLink*> held;
    for (unsigned i = 0; i < 70; ++i) {
        held.push_back(&node_.accept(identity(100 + i)));
        node_.pass(milliseconds(1));
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(held[i]->closed().has_value(), i < 6) << i;
    }
}

TEST_F(OneMesh, limits_the_links_that_one_member_opens_without_a_hello) {
    node_.adopt(view_);
    std::vector<FakeLink*> held;
    for (unsigned i = 0; i < 40; ++i) held.push_back(&node_.accept(identity(0)));
    for (std::size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(held[i]->closed().has_value(), i < 8) << i;
    }
    node_.hears_hello(*held.back());
    node_.hears_confirm(*held.back());
    EXPECT_TRUE(node_.mesh().complete());
    for (unsigned i = 0; i < 40; ++i) held.push_back(&node_.accept(identity(0)));
    EXPECT_EQ(std::ranges::count_if(held, [](const auto* link) { return !link->closed(); }), 33);
    node_.hears_hello(*held.back());
    EXPECT_EQ(held.back()->closed(), "you are already connected");
    node_.run(seconds(10));
    EXPECT_EQ(std::ranges::count_if(held, [](const auto* link) { return !link->closed(); }), 1);
}

TEST_F(OneMesh, accepts_a_waiting_peer_when_a_view_names_it) {
    FakeLink& link = node_.accept(identity(0));
    node_.hears_hello(link, 1);
    EXPECT_FALSE(said_welcome(link));
    node_.adopt(view_);
    EXPECT_TRUE(said_welcome(link));
    node_.hears_confirm(link);
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_FALSE(node_.report().dialed);
    EXPECT_TRUE(dialed().empty());
}

TEST_F(OneMesh, abandons_dials_to_a_member_that_a_newer_view_omits) {
    node_.adopt(view_);
    FakeLink& offered = node_.accept(identity(2));
    node_.hears_hello(offered, 2);
    View newer{.epoch = Epoch(2), .members = {view_.members[1]}};
    newer.members.push_back(
        {.node = node(2), .incarnation = Incarnation(1), .rank = Rank(2), .addresses = {at_first}});
    node_.adopt(newer);
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0)));
    EXPECT_TRUE(said_welcome(offered));
    node_.hears_confirm(offered);
    down(0);
    EXPECT_TRUE(node_.mesh().complete());
    // The engine of this test does not know this peer.
    ASSERT_TRUE(offered.closed().has_value());
    EXPECT_FALSE(node_.mesh().idle());
    node_.down(offered.id());
    EXPECT_TRUE(node_.mesh().idle());
}

TEST_F(OneMesh, closes_all_pending_links) {
    node_.adopt(view_);
    FakeLink& held = node_.accept(identity(7));
    node_.close();
    EXPECT_TRUE(held.closed().has_value());
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0)));
    EXPECT_FALSE(node_.mesh().idle());
    node_.down(held.id());
    down(0);
    EXPECT_TRUE(node_.mesh().idle());
    EXPECT_EQ(dialed().size(), 1U) << "the next address was tried";
}

/// Node 0, which has the lower rank and the lower id.
class Decider : public ::testing::Test {
protected:
    View view_ = view_of({{at_own}, {at_first}});
    MeshNode node_{0, view_, {}};
};

TEST_F(Decider, waits_for_the_higher_rank_to_dial_first) {
    node_.adopt(view_);
    node_.run(milliseconds(1099));  // 1 s, and 50 ms for each member
    EXPECT_TRUE(node_.dials().empty());
    node_.run(milliseconds(1));
    EXPECT_EQ(node_.dials().size(), 1U);
}

TEST_F(Decider, accepts_an_offered_link_when_its_own_dials_do_not_come_up) {
    node_.adopt(view_);
    node_.run(milliseconds(1100));
    FakeLink& offered = node_.accept(identity(1));
    node_.hears_hello(offered);
    EXPECT_FALSE(said_welcome(offered));
    node_.run(milliseconds(99));
    EXPECT_FALSE(said_welcome(offered));
    node_.run(milliseconds(1));
    EXPECT_TRUE(said_welcome(offered));
    EXPECT_EQ(node_.dialer().abandoned.size(), 1U);
    node_.hears_confirm(offered);
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_FALSE(node_.report().dialed);
}

TEST(ManyPeers, are_dialed_a_few_at_a_time_and_silent_ones_do_not_block_the_others) {
    std::vector<std::vector<Address>> addresses(11, {at_first});
    const View view = view_of(addresses);
    MeshNode node(10, view, {});
    node.adopt(view);
    EXPECT_EQ(node.dials().size(), 4U);
    FakeLink& link =
        node.up(node.dials()[0].id, {.node = node.dials()[0].node, .incarnation = Incarnation(1)});
    EXPECT_EQ(node.dials().size(), 4U);
    node.hears_welcome(link, Rank(10));
    EXPECT_EQ(node.dials().size(), 5U);
    node.run(milliseconds(999));
    EXPECT_EQ(node.dials().size(), 5U);
    const auto dialed = [&] {
        std::set<NodeId> peers;
        for (const auto& dial : node.dials()) peers.insert(dial.node);
        return peers.size();
    };
    // Silent peers are dialed again, in turn with peers that were not dialed yet.
    node.run(milliseconds(1));
    EXPECT_EQ(node.dials().size(), 9U);
    node.run(seconds(2));
    EXPECT_EQ(node.dials().size(), 17U) << "four in a second";
    EXPECT_EQ(dialed(), 10U);
}

TEST(ManyPeers, are_dialed_in_a_different_order_by_each_node) {
    const View view = view_of(std::vector<std::vector<Address>>(7, {at_first}));
    for (std::size_t rank = 1; rank < view.members.size(); ++rank) {
        MeshNode node(static_cast<unsigned>(rank), view, {});
        node.adopt(view);
        const auto& dials = node.dials();
        ASSERT_EQ(dials.size(), std::min<std::size_t>(rank, 4)) << rank;
        for (std::size_t i = 0; i < dials.size(); ++i) {
            EXPECT_EQ(dials[i].node, view.members[rank - 1 - i].node) << rank;
        }
    }
}

class LazyMesh : public OneMesh {
protected:
    LazyMesh() : OneMesh({.eager = false}) {}

    SendOperation send_{};
    int value_ = 5;
    port::ConstBytes content_ = std::as_bytes(std::span(&value_, 1));

    void send() {
        send_.to = Rank(0);
        send_.tag = Tag(1);
        send_.content = {&content_, 1};
        node_.engine().start(node_.world(), send_);
        node_.pass({});
    }
};

TEST_F(LazyMesh, dials_on_the_first_send) {
    node_.adopt(view_);
    node_.run(seconds(100));
    EXPECT_TRUE(dialed().empty());
    send();
    EXPECT_THAT(dialed(), ElementsAre(at_first.text()));
    // The node outlives the send, which must end first.
    node_.engine().cancel(send_);
    EXPECT_EQ(node_.engine().poll_done(), &send_);
}

TEST_F(LazyMesh, gives_up_after_its_timeout_and_names_the_addresses) {
    node_.adopt(view_);
    send();
    const TimePoint begun = node_.now();
    for (std::size_t failed = 0; node_.now() < begun + milliseconds(29'999);) {
        node_.run(milliseconds(1));
        while (failed < node_.dials().size()) down(failed++, "nobody there");
    }
    EXPECT_EQ(node_.engine().poll_done(), nullptr);
    node_.run(milliseconds(1));
    ASSERT_EQ(node_.engine().poll_done(), &send_);
    ASSERT_TRUE(send_.error.has_value());
    EXPECT_EQ(send_.error->code(), Errc::timed_out);
    EXPECT_THAT(send_.error->what(), HasSubstr(at_first.text() + ": nobody there"));
    EXPECT_THAT(send_.error->what(), HasSubstr(at_third.text()));
}

TEST_F(LazyMesh, gives_up_on_addresses_that_stay_silent_and_names_them) {
    node_.adopt(view_);
    send();
    node_.run(seconds(30));
    ASSERT_EQ(node_.engine().poll_done(), &send_);
    EXPECT_THAT(send_.error->what(), HasSubstr(at_first.text()));
    EXPECT_THAT(send_.error->what(), HasSubstr(at_second.text()));
    EXPECT_THAT(send_.error->what(), Not(HasSubstr(at_third.text())))
        << "the loopback address of another host";
}

TEST_F(LazyMesh, send_to_a_leaving_peer_fails_at_once) {
    node_.adopt(view_);
    send();
    FakeLink& link = up(0);
    node_.hears(link, wire::ErrorReport{.code = Errc::closed, .text = "the node was closed"});
    ASSERT_EQ(node_.engine().poll_done(), &send_);
    EXPECT_EQ(send_.error->code(), Errc::link_closed);
    EXPECT_THAT(send_.error->what(), HasSubstr("rank 0 left"));
}

}  // namespace
}  // namespace nexar::engine
