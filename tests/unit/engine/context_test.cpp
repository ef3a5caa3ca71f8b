#include "hostile.hpp"

namespace nexar::engine {
namespace {

using wire::ContextBegin;
using wire::ContextEnd;

constexpr ContextId kChild{70};
constexpr wire::ContextOrigin kFirstChild{.parent = kWorld, .creation = 0};

/// A communicator derived from the world. The peer follows the protocol in some tests and violates
/// it in others.
class ContextTest : public HostilePeer {
protected:
    Context& make_child(const wire::ContextOrigin& origin = kFirstChild) {
        const std::array<NodeId, 3> members{node(0), node(1), node(2)};
        ++world_->creations;
        return engine_->add_context(kChild, members, kMe, origin);
    }

    void send_some(Context& context) {
        send_in(context, kHostile, 10);
        pump();
    }

    template <class Message>
    std::size_t count_written() const {
        return nexar::testing::frames_of<Message>(hostile_.written(Lane::eager)).size();
    }
};

TEST_F(ContextTest, is_introduced_once_before_its_first_message) {
    Context& child = make_child();
    send_some(child);
    send_some(child);
    const auto begun = nexar::testing::frames_of<ContextBegin>(hostile_.written(Lane::eager));
    ASSERT_EQ(begun.size(), 2U);
    EXPECT_EQ(begun[0].context, kWorld);  // the answer to the peer's introduction
    EXPECT_EQ(begun[1],
              (ContextBegin{.context = kChild, .origin = kFirstChild, .rank = kMe, .size = 3}));
}

TEST_F(ContextTest, answers_an_early_introduction_when_it_is_made) {
    const auto known = count_written<ContextBegin>();
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    EXPECT_EQ(count_written<ContextBegin>(), known);
    make_child();
    EXPECT_EQ(count_written<ContextBegin>(), known + 1);
}

TEST_F(ContextTest, has_no_reserve_before_it_is_made) {
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    wire::MessageHeader reserved = header(0, 1, 3, kChild);
    reserved.from_reserve = true;
    says(Lane::eager, eager(reserved));
    expect_disconnected(Errc::protocol_violation, "without credit");
}

TEST_F(ContextTest, uses_its_reserve_once_the_peer_has_made_it) {
    Context& child = make_child();
    const auto most = small_options().shared.headers;
    for (std::uint32_t i = 0; i < most; ++i) send(kHostile, 1);
    Asked& sent = send_in(child, kHostile, 1);
    pump();
    EXPECT_EQ(sent.ended, 0);
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    EXPECT_EQ(sent.ended, 1);
    const auto headers =
        nexar::testing::frames_of<wire::EagerHeader>(hostile_.written(Lane::eager));
    EXPECT_TRUE(headers.back().from_reserve);
}

TEST_F(ContextTest, message_before_the_introduction_disconnects_the_peer) {
    make_child();
    says(Lane::eager, eager(header(0, 1, 3, kChild)));
    expect_disconnected(Errc::protocol_violation, "without having introduced it");
}

TEST_F(ContextTest, second_introduction_disconnects_the_peer) {
    says(Lane::eager, begins(kWorld, kHostile));
    expect_disconnected(Errc::protocol_violation, "introduced one communicator twice");
}

TEST_F(ContextTest, detects_a_different_origin_under_the_same_id) {
    make_child();
    says(Lane::eager, begins(kChild, kHostile, 3, {.parent = kWorld, .creation = 1}));
    expect_disconnected(Errc::protocol_violation, "for another communicator: ");
}

TEST_F(ContextTest, detects_different_members_under_the_same_id) {
    make_child();
    says(Lane::eager, begins(kChild, kHostile, 4, kFirstChild));
    expect_disconnected(Errc::protocol_violation, "rank 1 of 4");
}

TEST_F(ContextTest, early_introduction_is_checked_when_the_communicator_is_made) {
    says(Lane::eager, begins(kChild, kHonest, 3, kFirstChild) + eager(header(0, 1, 3, kChild)));
    expect_not_disconnected();
    make_child();
    expect_disconnected(Errc::protocol_violation, "rank 2 of 3");
}

TEST_F(ContextTest, end_drops_waiting_messages_and_returns_their_credit) {
    Context& child = make_child();
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    const auto most = small_options().shared.headers;
    for (std::uint64_t i = 0; i < most; ++i) says(Lane::eager, eager(header(i, 1, 3, kChild)));
    EXPECT_EQ(engine_->messages(), most);
    engine_->end_context(child);
    EXPECT_EQ(engine_->messages(), 0U);
    std::uint32_t credits = 0;
    for (const auto& credit : control_frames<wire::Credit>()) credits += credit.headers;
    EXPECT_EQ(credits, most);
    expect_not_disconnected();
}

TEST_F(ContextTest, ended_communicator_drops_later_messages) {
    Context& child = make_child();
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    engine_->end_context(child);
    wire::MessageHeader granted = header(1, 1, 2000, kChild);
    granted.awaits_grant = true;
    says(Lane::eager, eager(header(0, 1, 3, kChild)) + bulk(granted));
    // The sender of a large message must not wait forever: it gets its grant, and its payload is
    // refused.
    ASSERT_EQ(control_frames<wire::Grant>().size(), 1U);
    const port::StreamId stream = hostile_.open();
    pump();
    hostile_.arrive(stream, stream_of(kChild, 1) + pattern(1, 100));
    pump();
    EXPECT_EQ(hostile_.incoming(), 0U);
    EXPECT_EQ(engine_->messages(), 0U);
    expect_not_disconnected();
    says(Lane::eager, said(ContextEnd{.context = kChild}));
    expect_not_disconnected();
    says(Lane::eager, eager(header(2, 1, 3, kChild)));
    expect_disconnected(Errc::protocol_violation, "without having introduced it");
}

TEST_F(ContextTest, late_introduction_of_an_ended_communicator_is_recognized) {
    engine_->end_context(make_child());
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild) + eager(header(0, 1, 3, kChild)));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_not_disconnected();
}

TEST_F(ContextTest, late_introduction_of_an_ended_first_world_is_recognized) {
    // A node that joins does not know the communicator that its world was made from.
    constexpr wire::ContextOrigin kElsewhere{.parent = ContextId(69), .creation = 3};
    engine_->end_context(make_child(kElsewhere));
    says(Lane::eager, begins(kChild, kHostile, 3, kElsewhere) + eager(header(0, 1, 3, kChild)) +
                          said(wire::CollectiveHeader{.context = kChild, .operation = 0}));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_not_disconnected();
}

TEST_F(ContextTest, child_of_an_ended_communicator_has_ended_too) {
    Context& child = make_child();
    child.creations = 1;
    engine_->end_context(child);
    says(Lane::eager, begins(ContextId(71), kHostile, 3, {.parent = kChild, .creation = 0}) +
                          eager(header(0, 1, 3, ContextId(71))));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_not_disconnected();
}

TEST_F(ContextTest, announces_its_end_only_to_peers_that_it_was_introduced_to) {
    Context& child = make_child();
    send_some(child);
    engine_->end_context(child);
    EXPECT_EQ(count_written<ContextEnd>(), 1U);
    EXPECT_EQ(nexar::testing::frames_of<ContextEnd>(honest_.written(Lane::eager)).size(), 0U);
    // The id can be introduced again: no state of the first communicator remains.
    says(Lane::eager, begins(kChild, kHostile, 3, kFirstChild));
    says(Lane::eager, said(ContextEnd{.context = kChild}));
    expect_not_disconnected();
}

TEST_F(ContextTest, announces_its_end_when_the_lane_has_room_again) {
    Context& child = make_child();
    send_some(child);
    hostile_.set_room(Lane::eager, 0);
    engine_->end_context(child);
    pump();
    EXPECT_EQ(count_written<ContextEnd>(), 0U);
    hostile_.set_room(Lane::eager, 1000);
    pump();
    EXPECT_EQ(count_written<ContextEnd>(), 1U);
    expect_other_peer_unaffected();
}

TEST_F(ContextTest, pending_end_frame_is_dropped_with_the_link) {
    Context& child = make_child();
    send_some(child);
    hostile_.set_room(Lane::eager, 0);
    engine_->end_context(child);
    hostile_.go_down(Error(Errc::link_closed, "gone"));
    pump();
    expect_other_peer_unaffected();
}

TEST_F(ContextTest, end_without_an_introduction_disconnects_the_peer) {
    says(Lane::eager, said(ContextEnd{.context = kChild}));
    expect_disconnected(Errc::protocol_violation, "without having introduced it");
}

}  // namespace
}  // namespace nexar::engine
