// Where the link of one pair travels, and when it moves.

#include "engine/mesh_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/fake_link.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::FakeLink;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeId peer() {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes.front() = std::byte{7};
    return NodeId(bytes);
}

const Address first_home = Address::parse("10.0.0.1:7400").value();
const Address second_home = Address::parse("10.0.7.1:7400").value();
const Address tunnel_address = Address::tunnel(peer().bytes());

class Path : public ::testing::Test {
protected:
    void begin(const Address& at, bool direct_home, bool dialed = true) {
        link_.address = at;
        path_.set_home(now_, direct_home, {first_home, second_home});
        path_.begin(now_, link_, dialed);
    }
    /// Calls turn() when it is due, until `span` has passed or a move begins. Returns true if one
    /// has begun.
    bool moves_within(Duration span) {
        const TimePoint end = now_ + span;
        const std::size_t moves = link_.moves.size();
        while (path_.due() <= end && link_.moves.size() == moves) {
            EXPECT_GE(path_.due(), now_) << "a deadline in the past makes a loop spin";
            now_ = std::max(now_, path_.due());
            path_.turn(now_);
        }
        if (link_.moves.size() != moves) return true;
        now_ = end;
        return false;
    }
    void pass(Duration span) { EXPECT_FALSE(moves_within(span)) << link_.moves.back().text(); }
    void succeed() {
        link_.address = link_.moves.back();
        path_.on_changed(now_, link_.address);
    }
    void fail() { path_.on_failed(now_, Address(link_.moves.back())); }
    /// How long the path waits before the next attempt to return, all of whose addresses fail.
    Duration pause_before_a_failure() {
        const TimePoint since = now_;
        EXPECT_TRUE(moves_within(seconds(100)));
        const TimePoint began = now_;
        while (path_.moving()) fail();
        return began - since;
    }

    TimePoint now_ = TimePoint(seconds(100));
    FakeLink link_{port::LinkId(3), {.cluster = {}, .node = peer(), .incarnation = {}}};
    MeshPath path_{peer(), {.moves = true}};
};

TEST_F(Path, does_nothing_while_the_link_is_where_it_belongs) {
    begin(first_home, true);
    EXPECT_FALSE(path_.in_tunnel());
    EXPECT_EQ(path_.due(), TimePoint::max());
    begin(tunnel_address, false);
    EXPECT_TRUE(path_.in_tunnel());
    EXPECT_EQ(path_.due(), TimePoint::max());
    EXPECT_THAT(link_.moves, IsEmpty());
    EXPECT_FALSE(path_.take_request());
}

TEST_F(Path, a_link_in_the_tunnel_tries_every_direct_address_after_growing_pauses) {
    begin(tunnel_address, true);
    pass(milliseconds(999));
    EXPECT_TRUE(moves_within(milliseconds(1)));
    EXPECT_THAT(link_.moves, ElementsAre(first_home));
    fail();
    EXPECT_THAT(link_.moves, ElementsAre(first_home, second_home)) << "without a pause";
    fail();
    EXPECT_FALSE(path_.moving());
    std::vector<Duration> pauses;
    for (int i = 0; i < 8; ++i) pauses.push_back(pause_before_a_failure());
    EXPECT_THAT(pauses, ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(16),
                                    seconds(30), seconds(30), seconds(30)));
}

TEST_F(Path, a_move_that_succeeds_ends_the_attempts) {
    begin(tunnel_address, true);
    ASSERT_TRUE(moves_within(seconds(1)));
    fail();
    succeed();
    EXPECT_FALSE(path_.in_tunnel());
    EXPECT_EQ(path_.due(), TimePoint::max());
}

TEST_F(Path, a_move_that_nothing_is_heard_of_fails_after_its_patience) {
    begin(tunnel_address, true);
    ASSERT_TRUE(moves_within(seconds(1)));
    pass(milliseconds(4999));
    ASSERT_TRUE(moves_within(milliseconds(1)));
    EXPECT_THAT(link_.moves, ElementsAre(first_home, second_home));
    path_.on_failed(now_, first_home);
    EXPECT_TRUE(path_.moving()) << "the failure is that of the first move";
}

TEST_F(Path, a_link_that_does_not_work_leaves_for_the_tunnel_and_returns) {
    begin(first_home, true);
    pass(seconds(60));
    EXPECT_TRUE(path_.leave(now_));
    EXPECT_TRUE(path_.leave(now_)) << "it moves already";
    EXPECT_THAT(link_.moves, ElementsAre(tunnel_address));
    succeed();
    EXPECT_TRUE(path_.in_tunnel());
    pass(milliseconds(999));
    ASSERT_TRUE(moves_within(milliseconds(1)));
    EXPECT_EQ(link_.moves.back(), first_home);
    succeed();
    EXPECT_EQ(path_.due(), TimePoint::max());
}

TEST_F(Path, stays_when_it_cannot_leave) {
    begin(first_home, true);
    ASSERT_TRUE(path_.leave(now_));
    fail();
    EXPECT_FALSE(path_.moving());
    EXPECT_EQ(path_.due(), TimePoint::max());
    EXPECT_FALSE(path_.in_tunnel());
}

TEST_F(Path, tries_the_tunnel_again_for_a_second_unless_the_link_cannot_move) {
    begin(first_home, true);
    ASSERT_TRUE(path_.leave(now_));
    for (int i = 0; i < 4; ++i) {
        pass(milliseconds(240));
        fail();
        EXPECT_TRUE(path_.moving()) << "after " << i + 1 << " failures";
    }
    EXPECT_THAT(link_.moves, Each(tunnel_address));
    pass(milliseconds(9));
    fail();
    EXPECT_FALSE(path_.moving()) << "it failed at once";
    ASSERT_TRUE(path_.leave(now_));
    pass(milliseconds(1000));
    fail();
    EXPECT_FALSE(path_.moving());
}

TEST_F(Path, a_direct_path_that_fails_again_and_again_is_used_less_and_less) {
    begin(first_home, true);
    std::vector<Duration> pauses;
    for (int i = 0; i < 7; ++i) {
        pass(seconds(5));
        ASSERT_TRUE(path_.leave(now_));
        succeed();
        const TimePoint since = now_;
        ASSERT_TRUE(moves_within(seconds(100)));
        pauses.push_back(now_ - since);
        succeed();
    }
    EXPECT_THAT(pauses, ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(16),
                                    seconds(30), seconds(30)));
    pass(seconds(30));
    ASSERT_TRUE(path_.leave(now_));
    succeed();
    pass(milliseconds(999));
    EXPECT_TRUE(moves_within(milliseconds(1))) << "it had worked for long";
}

TEST_F(Path, a_link_of_a_pair_that_are_not_neighbours_never_uses_the_direct_path) {
    begin(tunnel_address, false);
    pass(seconds(100));
    EXPECT_FALSE(path_.leave(now_));
    path_.asked(now_, true);
    EXPECT_THAT(link_.moves, IsEmpty());
}

TEST_F(Path, moves_at_once_when_the_two_become_neighbours_or_cease_to_be) {
    begin(tunnel_address, false);
    path_.set_home(now_, true, {second_home});
    ASSERT_TRUE(moves_within(Duration::zero()));
    EXPECT_THAT(link_.moves, ElementsAre(second_home));
    succeed();
    path_.set_home(now_, false, {second_home});
    ASSERT_TRUE(moves_within(Duration::zero()));
    EXPECT_THAT(link_.moves, ElementsAre(second_home, tunnel_address));
    fail();
    pass(milliseconds(999));
    EXPECT_TRUE(moves_within(milliseconds(1))) << "the number of direct links is bounded";
    succeed();
    EXPECT_EQ(path_.due(), TimePoint::max());
}

TEST_F(Path, stops_trying_direct_addresses_when_the_two_cease_to_be_neighbours) {
    begin(tunnel_address, true);
    ASSERT_TRUE(moves_within(seconds(1)));
    path_.set_home(now_, false, {first_home, second_home});
    fail();
    EXPECT_THAT(link_.moves, ElementsAre(first_home));
    EXPECT_EQ(path_.due(), TimePoint::max());
}

TEST_F(Path, a_new_view_begins_with_the_shortest_pause_again) {
    begin(tunnel_address, true);
    for (int i = 0; i < 5; ++i) pause_before_a_failure();
    path_.set_home(now_, true, {first_home});
    EXPECT_EQ(pause_before_a_failure(), Duration::zero());
    EXPECT_EQ(pause_before_a_failure(), seconds(1));
}

TEST_F(Path, the_side_that_accepted_the_link_asks_for_moves) {
    begin(first_home, true, false);
    EXPECT_TRUE(path_.leave(now_));
    EXPECT_EQ(path_.take_request(), false);
    EXPECT_FALSE(path_.take_request());
    path_.on_changed(now_, tunnel_address);
    EXPECT_TRUE(path_.in_tunnel());
    EXPECT_EQ(path_.due(), TimePoint::max()) << "the other side tries the direct path again";
    EXPECT_TRUE(path_.leave(now_));
    EXPECT_EQ(path_.take_request(), true);
    path_.set_home(now_, true, {first_home});
    EXPECT_EQ(path_.take_request(), true);
    path_.set_home(now_, false, {first_home});
    EXPECT_FALSE(path_.take_request());
    path_.asked(now_, true);
    EXPECT_THAT(link_.moves, IsEmpty());
}

TEST_F(Path, the_side_that_dialed_does_what_the_peer_asks_but_not_all_the_time) {
    begin(first_home, true);
    path_.asked(now_, true);
    EXPECT_THAT(link_.moves, IsEmpty()) << "it uses the direct path";
    path_.asked(now_, false);
    EXPECT_THAT(link_.moves, ElementsAre(tunnel_address));
    succeed();
    path_.asked(now_, true);
    EXPECT_EQ(link_.moves.size(), 1U);
    now_ += milliseconds(100);
    path_.asked(now_, true);
    EXPECT_THAT(link_.moves, ElementsAre(tunnel_address, first_home));
    path_.asked(now_, true);
    EXPECT_EQ(link_.moves.size(), 2U) << "it moves already";
}

TEST_F(Path, a_request_of_the_peer_ends_a_long_pause) {
    begin(tunnel_address, true);
    for (int i = 0; i < 8; ++i) pause_before_a_failure();
    now_ += milliseconds(100);
    path_.asked(now_, true);
    EXPECT_TRUE(path_.moving());
    while (path_.moving()) fail();
    EXPECT_EQ(pause_before_a_failure(), seconds(1));
}

TEST_F(Path, a_link_that_has_ended_is_not_used) {
    begin(tunnel_address, true);
    ASSERT_TRUE(moves_within(seconds(1)));
    path_.end();
    EXPECT_EQ(path_.due(), TimePoint::max());
    path_.on_failed(now_, first_home);
    path_.on_changed(now_, first_home);
    path_.asked(now_, true);
    path_.set_home(now_, false, {});
    EXPECT_FALSE(path_.leave(now_));
    EXPECT_FALSE(path_.in_tunnel());
    EXPECT_THAT(link_.moves, ElementsAre(first_home));
}

TEST_F(Path, a_link_without_an_address_or_with_nowhere_to_go_stays) {
    begin(Address{}, true);
    EXPECT_FALSE(path_.leave(now_));
    link_.address = tunnel_address;
    path_.set_home(now_, true, {});
    path_.begin(now_, link_, true);
    EXPECT_FALSE(path_.leave(now_));
}

TEST_F(Path, moves_nothing_unless_its_owner_wants_it) {
    MeshPath still(peer(), {});
    link_.address = tunnel_address;
    still.set_home(now_, true, {first_home});
    still.begin(now_, link_, true);
    EXPECT_TRUE(still.in_tunnel());
    EXPECT_FALSE(still.leave(now_));
    still.asked(now_, true);
    still.on_changed(now_, first_home);
    EXPECT_FALSE(still.in_tunnel());
    EXPECT_EQ(still.due(), TimePoint::max());
    EXPECT_THAT(link_.moves, IsEmpty());
}

}  // namespace
}  // namespace nexar::engine
