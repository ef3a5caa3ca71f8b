// One mesh whose link to a peer is up, but does not seem to work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/one_mesh.hpp"

namespace nexar::engine {
namespace {

class DoubtfulLink : public OneMesh {
protected:
    DoubtfulLink() {
        node_.engine().set_view(view_);
        node_.engine().await_verdicts(true);
        node_.adopt(view_);
        first_ = &up(0);
        node_.hears_welcome(*first_, Rank(1));
        EXPECT_TRUE(node_.mesh().complete());
        node_.run(seconds(2));
    }

    void set_silent(bool silent) {
        node_.engine().set_silent(node(0), silent);
        node_.pass(Duration::zero());
    }
    bool is_connected() { return node_.engine().is_connected(node(0)); }

    FakeLink* first_ = nullptr;
};

TEST_F(DoubtfulLink, is_replaced_when_the_peer_stays_silent_and_one_of_its_addresses_answers) {
    ASSERT_EQ(dialed().size(), 1U);
    set_silent(true);
    ASSERT_EQ(dialed().size(), 2U);
    FakeLink& second = up(1);
    node_.pass(milliseconds(50));
    EXPECT_FALSE(first_->dropped()) << "a packet may be on its way";
    EXPECT_FALSE(said_hello(second));
    node_.pass(milliseconds(50));
    EXPECT_TRUE(first_->dropped());
    down(0);
    EXPECT_FALSE(is_connected());
    EXPECT_TRUE(said_hello(second));
    node_.hears_welcome(second, Rank(1));
    EXPECT_TRUE(is_connected());
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 2U);
    EXPECT_FALSE(second.closed() || second.dropped());
}

TEST_F(DoubtfulLink, has_more_time_if_the_other_link_took_long_to_come_up) {
    set_silent(true);
    node_.pass(milliseconds(120));
    up(1);
    node_.pass(milliseconds(230));
    EXPECT_FALSE(first_->dropped());
    node_.pass(milliseconds(10));
    EXPECT_TRUE(first_->dropped());
}

TEST_F(DoubtfulLink, stays_when_the_peer_is_heard_again) {
    set_silent(true);
    FakeLink& second = up(1);
    set_silent(false);
    EXPECT_EQ(second.closed(), "the first link works again");
    down(1);
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 2U);
    EXPECT_FALSE(first_->dropped());
    EXPECT_TRUE(is_connected());
}

TEST_F(DoubtfulLink, is_tested_for_as_long_as_the_peer_is_silent) {
    set_silent(true);
    node_.run(seconds(10));
    EXPECT_GE(dialed().size(), 5U);
    EXPECT_FALSE(first_->dropped()) << "no address answered";
    const std::size_t dials = dialed().size();
    set_silent(false);
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), dials);
}

TEST_F(DoubtfulLink, is_tested_when_it_has_stalled) {
    node_.handle({.link = id(0), .what = port::Stalled{.stalled = true}});
    EXPECT_EQ(dialed().size(), 2U);
    node_.handle({.link = id(0), .what = port::Stalled{.stalled = false}});
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 2U);
    EXPECT_TRUE(is_connected());
}

TEST_F(DoubtfulLink, stays_if_nobody_decides_who_is_a_member) {
    node_.engine().await_verdicts(false);
    node_.handle({.link = id(0), .what = port::Stalled{.stalled = true}});
    node_.run(seconds(60));
    EXPECT_EQ(dialed().size(), 1U);
    EXPECT_TRUE(is_connected());
}

TEST_F(DoubtfulLink, gives_way_to_the_link_with_which_the_peer_replaces_it) {
    FakeLink& offered = node_.accept(identity(0));
    node_.hears_hello(offered);
    EXPECT_TRUE(first_->dropped());
    EXPECT_TRUE(said_welcome(offered));
    node_.hears_confirm(offered);
    EXPECT_TRUE(is_connected());
    EXPECT_FALSE(offered.closed());
}

TEST_F(DoubtfulLink, that_breaks_gives_way_to_the_one_that_tests_it) {
    set_silent(true);
    FakeLink& second = up(1);
    down(0);
    EXPECT_TRUE(said_hello(second));
    node_.hears_welcome(second, Rank(1));
    EXPECT_TRUE(is_connected());
}

}  // namespace
}  // namespace nexar::engine
