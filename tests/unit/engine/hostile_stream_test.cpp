#include "hostile.hpp"

namespace nexar::engine {
namespace {

class HostileStream : public HostilePeer {};

TEST_F(HostileStream, two_streams_for_one_message_disconnect_the_peer) {
    Asked& asked = receive(kHostile, 1);
    says(Lane::eager, bulk(header(0, 1, 300)));
    streams(stream_of(kWorld, 0) + pattern(1, 100));
    expect_not_disconnected();
    streams(stream_of(kWorld, 0) + pattern(1, 300));
    EXPECT_EQ(asked.ended, 0);
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::protocol_violation);
}

TEST_F(HostileStream, two_streams_before_the_header_of_their_message_disconnect_the_peer) {
    streams(stream_of(kWorld, 0) + pattern(1, 100));
    expect_not_disconnected();
    streams(stream_of(kWorld, 0) + pattern(1, 100));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileStream, a_stream_that_overruns_the_announced_size_disconnects_the_peer) {
    says(Lane::eager, bulk(header(0, 1, 100)));
    const port::StreamId stream = streams(stream_of(kWorld, 0) + pattern(1, 100));
    expect_not_disconnected();
    hostile_.arrive(stream, pattern(2, 1));
    pump();
    expect_disconnected(Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileStream, an_overrunning_stream_writes_nothing_past_the_announced_size) {
    for (const bool direct : {false, true}) {
        SCOPED_TRACE(direct);
        hostile_.direct = direct;
        Asked& asked = receive(kHostile, 1, 200);
        says(Lane::eager, bulk(header(direct ? 1 : 0, 1, 100)));
        const port::StreamId stream = streams(stream_of(kWorld, direct ? 1 : 0) + pattern(1, 100));
        EXPECT_EQ(Bytes(asked.memory.begin(), asked.memory.begin() + 100), pattern(1, 100));
        if (direct) {
            hostile_.arrive(stream, pattern(2, 100));
            pump();
        } else {
            hostile_.finish(stream);
            pump();
            EXPECT_EQ(asked.ended, 1);
        }
        EXPECT_EQ(Bytes(asked.memory.begin() + 100, asked.memory.end()), Bytes(100));
    }
    expect_disconnected(Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileStream, a_piece_that_overruns_the_announced_size_is_dropped_whole) {
    Asked& asked = receive(kHostile, 1, 200);
    says(Lane::eager, bulk(header(0, 1, 100)));
    streams(stream_of(kWorld, 0) + pattern(1, 101));
    EXPECT_EQ(asked.memory, Bytes(200));
    expect_disconnected(Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileStream, a_stream_that_ends_early_disconnects_the_peer) {
    Asked& asked = receive(kHostile, 1, 200);
    says(Lane::eager, bulk(header(0, 1, 100)));
    hostile_.finish(streams(stream_of(kWorld, 0) + pattern(1, 99)));
    pump();
    EXPECT_EQ(asked.ended, 0);
    expect_disconnected(Errc::protocol_violation, "the peer ended a payload of 100 bytes after 99");
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::protocol_violation);
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
}

TEST_F(HostileStream, a_stream_that_ends_within_its_preamble_disconnects_the_peer) {
    Bytes preamble = stream_of(kWorld, 0);
    preamble.pop_back();
    hostile_.finish(streams(preamble));
    pump();
    expect_disconnected(Errc::protocol_violation,
                        "the peer ended a payload stream before it sent the header");
}

TEST_F(HostileStream, a_stream_without_payload_disconnects_the_peer) {
    hostile_.finish(streams(stream_of(kWorld, 0)));
    pump();
    expect_disconnected(Errc::protocol_violation,
                        "the peer ended a payload stream before it sent the header");
}

TEST_F(HostileStream, a_stream_with_the_preamble_of_a_lane_disconnects_the_peer) {
    streams(said(wire::Preamble{.lane = wire::Lane::control}) + pattern(1, 16));
    expect_disconnected(Errc::protocol_violation,
                        "the peer opened a payload stream without naming its payload");
}

TEST_F(HostileStream, a_stream_with_an_invalid_preamble_disconnects_the_peer) {
    streams(pattern(1, 24));
    expect_disconnected(Errc::protocol_violation,
                        "the peer opened a payload stream without naming its payload");
}

TEST_F(HostileStream, streams_of_messages_that_never_arrive_hold_only_their_windows) {
    constexpr std::uint64_t kStreams = 256;  // the most that a link allows
    std::vector<port::StreamId> opened;
    for (std::uint64_t i = 0; i < kStreams; ++i) {
        opened.push_back(
            streams(stream_of(ContextId(~i), ~std::uint64_t{0} - i) + pattern(i, 500)));
    }
    expect_not_disconnected();
    EXPECT_EQ(hostile_.incoming(), kStreams);
    EXPECT_EQ(hostile_.parked(), kStreams * 500) << "the engine takes only the preambles";
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
    for (std::size_t i = 0; i < opened.size(); i += 2) hostile_.reset(opened[i]);
    pump();
    expect_other_peer_unaffected();
    // The name of a reset stream can be used again.
    streams(stream_of(ContextId(~std::uint64_t{0}), ~std::uint64_t{0}) + pattern(1, 5));
    expect_not_disconnected();
    hostile_.go_down(Error(Errc::timed_out, "it is gone"));
    pump();
    EXPECT_EQ(waiting_->error()->code(), Errc::timed_out);
}

TEST_F(HostileStream, a_stream_for_a_message_that_arrived_on_the_lane_is_refused) {
    says(Lane::eager, eager(header(0, 1, 10)));
    streams(stream_of(kWorld, 0) + pattern(9, 10));
    expect_not_disconnected();
    EXPECT_EQ(hostile_.incoming(), 0U);
    Asked& asked = receive(kHostile, 1, 10);
    pump();
    EXPECT_EQ(asked.memory, pattern(1, 10));
}

TEST_F(HostileStream, a_stream_before_a_message_on_the_lane_disconnects_the_peer) {
    streams(stream_of(kWorld, 0) + pattern(9, 10));
    says(Lane::eager, eager(header(0, 1, 10)));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileStream, sizes_near_the_integer_limit_are_refused) {
    for (const std::uint64_t size :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 23, std::uint64_t{1} << 63U}) {
        const Bytes frame = nexar::testing::with_size(bulk(header(0, 1, 100)), size);
        says(Lane::eager, frame);
        EXPECT_EQ(engine_->messages(), 0U);
    }
    expect_disconnected(Errc::limit_exceeded, "size");
}

TEST_F(HostileStream, an_eager_size_above_the_limit_is_refused) {
    says(Lane::eager,
         nexar::testing::with_size(said(wire::EagerHeader{header(0, 1, 8)}), ~std::uint64_t{0}));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_disconnected(Errc::limit_exceeded, "size");
}

TEST_F(HostileStream, a_message_of_the_largest_size_buffers_only_its_head) {
    says(Lane::eager, bulk(header(0, 1, wire::kMaxByteCount)));
    streams(stream_of(kWorld, 0) + pattern(1, 5000));
    expect_not_disconnected();
    EXPECT_EQ(hostile_.parked(), 5000U - small_options().bulk_head);
    EXPECT_LE(pool_.statistics().total.bytes_in_use, 4096U);
    Asked& asked = receive(kHostile, 1);
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::truncated);
    EXPECT_EQ(engine_->messages(), 0U);
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_other_peer_unaffected();
}

TEST_F(HostileStream, a_receive_ends_with_the_link_when_its_payload_never_arrives) {
    Asked& asked = receive(kHostile, 1);
    says(Lane::eager, bulk(header(0, 1, 100)));
    streams(stream_of(kWorld, 0) + pattern(1, 50));
    EXPECT_EQ(asked.ended, 0);
    hostile_.go_down(Error(Errc::protocol_violation, "it ended the control lane"));
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::protocol_violation);
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    EXPECT_THAT(asked.error()->cause(), ::testing::HasSubstr("ended the control lane"));
    EXPECT_EQ(waiting_->error()->code(), Errc::protocol_violation);
    EXPECT_EQ(engine_->messages(), 0U);
    expect_other_peer_unaffected();
}

}  // namespace
}  // namespace nexar::engine
