// Members that left in good order, whose goodbye may have been lost on a path that was cut.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

constexpr std::string_view kLeft = "the peer left the cluster";

class Departed : public VerdictsTest {
protected:
    Departed() { set_members({0, 1, 2}); }

    void set_members(std::initializer_list<std::uint8_t> numbers) {
        View view{.epoch = Epoch(++epoch_)};
        for (const std::uint8_t number : numbers) {
            view.members.push_back({.node = node(number), .rank = Rank(number)});
        }
        engine_->set_view(view);
    }
    bool release(TimePoint since) {
        const bool linked = engine_->release(node(1), since);
        pump();
        return linked;
    }

    std::uint64_t epoch_ = 3;
};

TEST_F(Departed, silent_one_is_cut_off_and_has_left) {
    const Asked& streaming = send(kHostile, 3000);
    const Called& called = call(kHostile, 10);
    hostile_.heard = now_;
    set_members({0, 2});
    EXPECT_FALSE(release(now_ + 1ms));
    EXPECT_TRUE(hostile_.dropped() || hostile_.closed());
    hostile_.go_down(Error(Errc::link_closed, "this side closed it"));
    pump();
    expect_ended_with(streaming, Errc::link_closed, "");
    expect_ended_with(*waiting_, Errc::link_closed, "");
    expect_failed(called, Errc::outcome_unknown);
    EXPECT_FALSE(engine_->casualty()) << "nobody failed";
    expect_staying_works();
}

TEST_F(Departed, one_that_still_sends_keeps_its_link) {
    hostile_.heard = now_;
    set_members({0, 2});
    EXPECT_TRUE(release(now_));
    EXPECT_EQ(waiting_->ended, 0);
    expect_not_disconnected();
    EXPECT_FALSE(release(now_ + 1ms));
    EXPECT_TRUE(hostile_.dropped() || hostile_.closed());
}

TEST_F(Departed, one_without_a_link_is_lost_at_once) {
    break_hostile();
    EXPECT_EQ(waiting_->ended, 0) << "the peer may have failed, and a verdict follows";
    set_members({0, 2});
    EXPECT_FALSE(release(now_));
    expect_ended_with(*waiting_, Errc::link_closed, kLeft);
    EXPECT_FALSE(engine_->casualty());
}

TEST_F(Departed, member_of_the_view_keeps_its_link) {
    hostile_.heard = now_;
    EXPECT_FALSE(release(now_ + 1ms));
    EXPECT_EQ(waiting_->ended, 0);
    expect_not_disconnected();
}

TEST_F(Departed, one_that_said_goodbye_and_fell_silent_has_left) {
    says(Lane::control, said(goodbye()));
    hostile_.go_down(Error(Errc::timed_out, "the peer is silent"));
    pump();
    expect_ended_with(*waiting_, Errc::link_closed, kLeft);
    EXPECT_FALSE(engine_->casualty());
}

}  // namespace
}  // namespace nexar::engine
