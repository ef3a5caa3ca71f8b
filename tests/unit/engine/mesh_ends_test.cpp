// One mesh against peers that the test plays: when a pair counts as connected, peers that leave,
// and peers that stay silent.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/one_mesh.hpp"

namespace nexar::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(OneMesh, counts_an_accepted_link_only_when_the_peer_has_confirmed_it) {
    node_.adopt(view_);
    FakeLink& link = node_.accept(identity(0));
    node_.hears_hello(link);
    EXPECT_TRUE(said_welcome(link));
    EXPECT_FALSE(node_.mesh().complete());
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0))) << "the link was chosen";
    down(0);
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 1U) << "the mesh tries nothing else while it waits for the confirm";
    node_.hears_confirm(link);
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_FALSE(link.closed());
}

TEST_F(OneMesh, counts_the_link_of_a_peer_without_the_confirm_feature_at_once) {
    node_.adopt(view_);
    FakeLink& link = node_.accept(identity(0));
    node_.hears(link, wire::Hello{.epoch = Epoch(1), .software = "an older build"});
    EXPECT_TRUE(said_welcome(link));
    EXPECT_TRUE(node_.mesh().complete());
}

TEST_F(OneMesh, dials_again_when_a_welcomed_link_goes_down_unconfirmed) {
    node_.adopt(view_);
    FakeLink& link = node_.accept(identity(0));
    node_.hears_hello(link);
    down(0);
    node_.down(link.id());
    EXPECT_FALSE(node_.mesh().complete());
    EXPECT_EQ(dialed().size(), 2U);
    node_.hears_welcome(up(1), Rank(1));
    EXPECT_TRUE(node_.mesh().complete());
}

TEST_F(OneMesh, prefers_a_newer_hello_to_an_unconfirmed_welcome) {
    node_.adopt(view_);
    FakeLink& first = node_.accept(identity(0));
    node_.hears_hello(first);
    FakeLink& second = node_.accept(identity(0));
    node_.hears_hello(second);
    EXPECT_EQ(first.closed(), "you sent a hello on another link");
    EXPECT_TRUE(said_welcome(second));
    node_.hears_confirm(second);
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_FALSE(second.closed());
}

TEST_F(OneMesh, refuses_an_unexpected_confirm) {
    node_.adopt(view_);
    FakeLink& early = node_.accept(identity(0));
    node_.hears(early, wire::Confirm{});
    EXPECT_THAT(early.closed().value_or(""), HasSubstr("before the hello and welcome"));
    EXPECT_FALSE(node_.mesh().complete());
}

TEST_F(OneMesh, fails_when_a_peer_leaves_before_it_was_connected) {
    node_.adopt(view_);
    FakeLink& link = up(0);
    EXPECT_FALSE(node_.mesh().failure());
    node_.hears(link, wire::ErrorReport{.code = Errc::timed_out, .text = "rank 5 is missing"});
    ASSERT_TRUE(node_.mesh().failure());
    EXPECT_EQ(node_.mesh().failure()->code(), Errc::link_closed);
    EXPECT_EQ(node_.mesh().failure()->rank(), 0);
    EXPECT_THAT(node_.mesh().failure()->what(), HasSubstr("rank 0 left before it was connected"));
    EXPECT_THAT(node_.mesh().failure()->what(), HasSubstr("rank 5 is missing"));
    node_.down(link.id());
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 1U) << "it is not dialed again";
}

TEST_F(OneMesh, a_peer_that_leaves_after_it_was_connected_does_not_fail_the_mesh) {
    node_.adopt(view_);
    FakeLink& used = node_.accept(identity(0));
    node_.hears_hello(used);
    node_.hears_confirm(used);
    FakeLink& other = node_.accept(identity(0));
    node_.hears(other, wire::ErrorReport{.code = Errc::closed, .text = "the node was closed"});
    EXPECT_FALSE(node_.mesh().failure());
    EXPECT_TRUE(node_.mesh().complete());
}

TEST_F(OneMesh, tells_unconnected_peers_why_it_leaves) {
    node_.adopt(view_);
    FakeLink& chosen = up(0);
    FakeLink& offered = node_.accept(identity(0));
    node_.close("rank 5 is missing");
    FakeLink& late = node_.accept(identity(0));
    for (const FakeLink* link : {&chosen, &offered, &late}) {
        const auto reports = frames_of<wire::ErrorReport>(link->written(Lane::control));
        ASSERT_EQ(reports.size(), 1U);
        EXPECT_EQ(reports[0].text, "rank 5 is missing");
        EXPECT_TRUE(link->closed().has_value());
    }
}

const wire::Abort rank_0_aborted{.code = 3, .rank = Rank(0), .text = "why"};

TEST_F(OneMesh, learns_of_an_abort_before_the_handshake_is_complete) {
    node_.adopt(view_);
    node_.hears(node_.accept(identity(7)), rank_0_aborted);
    EXPECT_FALSE(node_.engine().aborted()) << "the sender is not a member";
    node_.hears(node_.accept(identity(0)), rank_0_aborted);
    ASSERT_TRUE(node_.engine().aborted());
    EXPECT_EQ(node_.engine().aborted()->cause(), "rank 0 aborted the program with code 3: why");
    EXPECT_FALSE(node_.mesh().failure()) << "no peer left";
}

TEST_F(OneMesh, tells_unconnected_peers_of_an_abort_when_it_closes) {
    node_.adopt(view_);
    FakeLink& chosen = up(0);
    ASSERT_TRUE(node_.engine().hear_abort(rank_0_aborted));
    node_.close();
    FakeLink& late = node_.accept(identity(0));
    for (const FakeLink* link : {&chosen, &late}) {
        EXPECT_THAT(frames_of<wire::Abort>(link->written(Lane::control)),
                    ElementsAre(rank_0_aborted));
        EXPECT_THAT(frames_of<wire::ErrorReport>(link->written(Lane::control)), ElementsAre());
    }
}

/// When either process is stopped for longer than a handshake takes, nobody answers the dial
/// attempt.
TEST_F(OneMesh, dials_a_silent_peer_again_while_earlier_attempts_are_pending) {
    view_ = view_of({{at_first}, {at_own}});
    node_.adopt(view_);
    node_.run(milliseconds(999));
    EXPECT_EQ(dialed().size(), 1U);
    node_.run(milliseconds(1));
    EXPECT_THAT(dialed(), ElementsAre(at_first.text(), at_first.text()));
    EXPECT_TRUE(node_.dialer().abandoned.empty()) << "the first one may still be answered";
    node_.run(seconds(2));
    EXPECT_EQ(dialed().size(), 3U);
    EXPECT_TRUE(node_.dialer().abandoned.empty());
    node_.run(seconds(2));
    EXPECT_EQ(dialed().size(), 4U);
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0)))
        << "at most three attempts are in flight";
    node_.hears_welcome(up(3), Rank(1));
    EXPECT_TRUE(node_.mesh().complete());
    EXPECT_THAT(node_.dialer().abandoned, ElementsAre(id(0), id(1), id(2)));
}

TEST_F(OneMesh, starts_a_new_attempt_right_after_this_process_was_paused) {
    view_ = view_of({{at_first}, {at_own}});
    node_.adopt(view_);
    node_.pass(seconds(4));  // stopped
    EXPECT_EQ(dialed().size(), 2U);
}

TEST_F(OneMesh, names_silent_addresses_once_and_omits_loopback_of_another_host) {
    node_.adopt(view_);
    node_.run(milliseconds(300));
    EXPECT_EQ(node_.report().why, "no answer from " + at_first.text() + ", " + at_second.text() +
                                      "; does a firewall let UDP pass both ways?");
    for (std::size_t dial : {0U, 1U, 2U}) {
        node_.handle({.link = id(dial),
                      .what = port::Down{.reason = Error(Errc::timed_out, "no answer at all")}});
    }
    EXPECT_EQ(node_.report().why, "no answer from " + at_first.text() + ", " + at_second.text() +
                                      "; does a firewall let UDP pass both ways?");
}

TEST_F(OneMesh, wants_no_turn_after_it_was_closed) {
    node_.adopt(view_);
    EXPECT_TRUE(node_.mesh().next_deadline().has_value());
    node_.mesh().close(Error(Errc::closed, "the node was closed"));
    EXPECT_EQ(node_.mesh().next_deadline(), std::nullopt) << "nothing is dialed any more";
}

}  // namespace
}  // namespace nexar::engine
