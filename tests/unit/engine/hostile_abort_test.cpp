#include "hostile.hpp"

namespace nexar::engine {
namespace {

/// Peers that report an abort of the program.
class HostileAbort : public HostilePeer {
protected:
    HostileAbort() { engine_->calls().set_world(*world_); }

    void says_abort(const wire::Abort& abort) { says(Lane::control, said(abort)); }

    static std::vector<wire::Abort> aborts_sent_to(const FakeLink& link) {
        return nexar::testing::frames_of<wire::Abort>(link.written(Lane::control));
    }

    void expect_aborted(const Asked& asked, std::string_view text) {
        ASSERT_EQ(asked.ended, 1);
        ASSERT_TRUE(asked.error());
        EXPECT_EQ(asked.error()->code(), Errc::aborted) << asked.error()->what();
        EXPECT_EQ(asked.error()->cause(), text);
    }
};

constexpr std::string_view kText = "rank 2 aborted the program with code 3: why";
const wire::Abort rank_2_aborted{.code = 3, .rank = kHonest, .text = "why"};

TEST_F(HostileAbort, an_abort_by_a_rank_outside_the_world_disconnects_the_peer) {
    says_abort({.code = 3, .rank = Rank(3), .text = "why"});
    EXPECT_FALSE(engine_->aborted());
    expect_disconnected(Errc::protocol_violation, "rank 3 aborted the program; there are 3 ranks");
}

TEST_F(HostileAbort, a_false_abort_by_this_rank_disconnects_the_peer) {
    says_abort({.code = 3, .rank = kMe, .text = "why"});
    EXPECT_FALSE(engine_->aborted());
    expect_disconnected(Errc::protocol_violation, "this rank aborted the program, but it did not");
}

TEST_F(HostileAbort, unprintable_text_disconnects_the_peer) {
    Bytes frame = said(rank_2_aborted);
    frame.back() = std::byte{0x1b};
    says(Lane::control, frame);
    EXPECT_FALSE(engine_->aborted());
    expect_disconnected(Errc::malformed, "text is invalid at byte 2");
}

TEST_F(HostileAbort, an_abort_is_forwarded_once_to_all_other_peers) {
    says_abort(rank_2_aborted);
    says_abort({.code = 4, .rank = kHostile, .text = "another"});
    honest_.arrive(Lane::control, said(rank_2_aborted));
    pump();
    EXPECT_EQ(aborts_sent_to(honest_), std::vector{rank_2_aborted});
    EXPECT_TRUE(aborts_sent_to(hostile_).empty());
    EXPECT_FALSE(hostile_.closed());
    expect_aborted(*waiting_, kText);
    EXPECT_EQ(waiting_->error()->rank(), public_rank(kHonest));
    EXPECT_EQ(waiting_->error()->abort_code(), 3);
}

TEST_F(HostileAbort, an_abort_ends_pending_operations_and_leaves_their_memory_alone) {
    Asked& arriving = receive(kHostile, 5, 3000);
    says(Lane::eager, bulk(header(0, 5, 3000)));
    const auto stream = streams(stream_of(kWorld, 0) + pattern(1, 500));
    Asked& streaming = send(kHostile, 900);
    Asked& announced = send(kHostile, 9000, true);
    Asked& synchronous = send(kHostile, 10, true);
    says_abort(rank_2_aborted);
    for (const Asked* asked : {&arriving, &streaming, &announced, &synchronous}) {
        expect_aborted(*asked, kText);
    }
    const Bytes before = arriving.memory;
    says(Lane::eager, eager(header(1, 5, 100)));
    hostile_.arrive(stream, pattern(2, 500));
    pump();
    EXPECT_EQ(arriving.memory, before);
    // A late grant for the announced send is not a violation.
    says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(1)}));
    EXPECT_FALSE(hostile_.closed()) << *hostile_.closed();
    Asked& later = send(kHonest, 10);
    pump();
    expect_aborted(later, kText);
}

TEST_F(HostileAbort, a_peer_that_connects_later_learns_of_the_abort) {
    const std::array<NodeId, 4> members{node(0), node(1), node(2), node(3)};
    engine_->add_context(ContextId(8), members, kMe);
    ASSERT_TRUE(engine_->abort(5, "own"));
    EXPECT_FALSE(engine_->abort(6, "again"));
    EXPECT_FALSE(engine_->abort_told());
    EXPECT_EQ(engine_->poll_wanted(), node(3));
    FakeLink late(port::LinkId(13), {.cluster = {}, .node = node(3), .incarnation = {}});
    late.come_up();
    while (const auto event = late.poll_event()) engine_->handle(*event);
    const wire::Abort own{.code = 5, .rank = kMe, .text = "own"};
    EXPECT_EQ(aborts_sent_to(late), std::vector{own});
    EXPECT_EQ(aborts_sent_to(honest_), std::vector{own});
    EXPECT_TRUE(engine_->abort_told());
    pump();
    expect_aborted(*waiting_, "rank 0 aborted the program with code 5: own");
    late.go_down(Error(Errc::link_closed, "closed"));
    while (const auto event = late.poll_event()) engine_->handle(*event);
}

}  // namespace
}  // namespace nexar::engine
