#include <cstring>

#include "hostile_collective.hpp"

namespace nexar::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kBytes = 900;

class HostileCollectiveStream : public HostileCollective {
protected:
    wire::CollectiveHeader streamed(std::uint64_t sequence, std::uint64_t operation,
                                    std::uint64_t size = kBytes) {
        return part(sequence, operation, size, fingerprint(broadcast_call(size), operation),
                    PayloadPlace::stream);
    }
    void more(port::StreamId stream, const Bytes& bytes) {
        hostile_.arrive(stream, bytes);
        pump();
    }
    static Bytes slice(const Bytes& of, std::size_t from, std::size_t until) {
        return {of.begin() + static_cast<std::ptrdiff_t>(from),
                of.begin() + static_cast<std::ptrdiff_t>(until)};
    }

    /// The element-wise sum of 32-bit numbers.
    static Bytes added(const Bytes& a, const Bytes& b) {
        Bytes sums(a.size());
        for (std::size_t at = 0; at < a.size(); at += sizeof(std::uint32_t)) {
            std::uint32_t x = 0;
            std::uint32_t y = 0;
            std::memcpy(&x, a.data() + at, sizeof x);
            std::memcpy(&y, b.data() + at, sizeof y);
            x += y;
            std::memcpy(sums.data() + at, &x, sizeof x);
        }
        return sums;
    }

    const Bytes content_ = pattern(77, kBytes);
};

TEST_F(HostileCollectiveStream, header_call_and_stream_can_come_in_any_order) {
    std::array<int, 3> order{0, 1, 2};
    std::uint64_t number = 0;
    do {
        SCOPED_TRACE(number);
        const auto header = streamed(number, number);
        Asked* asked = nullptr;
        for (const int what : order) {
            if (what == 0) says_part(header);
            if (what == 1) asked = &broadcast(kBytes);
            if (what == 2) hostile_.finish(streams(part_stream(number) + content_));
            pump();
        }
        expect_succeeded(*asked, content_);
        EXPECT_EQ(hostile_.incoming(), 0U);
        ++number;
    } while (std::ranges::next_permutation(order).found);
    EXPECT_EQ(number, 6U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, elements_split_across_pieces_are_folded_correctly) {
    const Bytes own = pattern(5, kBytes);
    Asked& asked = call_with(*duo_, own, sum_call(kBytes / 4));
    says_part(part(0, 0, kBytes, asked.collective.terms.fingerprint, PayloadPlace::stream));
    const port::StreamId stream = streams(part_stream(0) + slice(content_, 0, 3));
    more(stream, slice(content_, 3, 10));
    EXPECT_EQ(asked.ended, 0);
    more(stream, slice(content_, 10, kBytes));
    expect_succeeded(asked, added(own, content_));
}

TEST_F(HostileCollectiveStream, a_stream_longer_than_announced_disconnects_the_peer) {
    Asked& asked = broadcast(kBytes);
    says_part(streamed(0, 0));
    streams(part_stream(0) + content_ + pattern(1, 1));
    EXPECT_EQ(asked.memory, Bytes(kBytes)) << "no part of it was written";
    expect_disconnected(Errc::protocol_violation, "a payload that is longer than its header said");
    expect_failed(asked, Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileCollectiveStream, bytes_after_the_end_of_the_payload_disconnect_the_peer) {
    Asked& asked = call_in(*duo_, kBytes, broadcast_call(kBytes));
    says_part(streamed(0, 0));
    const port::StreamId stream = streams(part_stream(0) + content_);
    expect_succeeded(asked, content_);
    more(stream, pattern(1, 1));
    expect_disconnected(Errc::protocol_violation, "a payload that is longer than its header said");
    EXPECT_EQ(asked.memory, content_);
}

TEST_F(HostileCollectiveStream, an_early_stream_longer_than_announced_disconnects_the_peer) {
    streams(part_stream(0) + content_ + pattern(1, 1));
    expect_not_disconnected();
    says_part(streamed(0, 0));
    Asked& asked = broadcast(kBytes);
    expect_disconnected(Errc::protocol_violation, "a payload that is longer than its header said");
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::protocol_violation);
}

TEST_F(HostileCollectiveStream, a_stream_shorter_than_announced_disconnects_the_peer) {
    Asked& asked = broadcast(kBytes);
    says_part(streamed(0, 0));
    const port::StreamId stream = streams(part_stream(0) + slice(content_, 0, 500));
    expect_not_disconnected();
    hostile_.finish(stream);
    pump();
    EXPECT_EQ(asked.ended, 0);
    expect_disconnected(Errc::protocol_violation,
                        "the peer ended a payload of 900 bytes after 500");
    expect_failed(asked, Errc::protocol_violation, "bytes after 500");
}

TEST_F(HostileCollectiveStream, an_empty_stream_of_an_early_message_disconnects_the_peer) {
    says_part(streamed(0, 0));
    hostile_.finish(streams(part_stream(0)));
    pump();
    Asked& asked = broadcast(kBytes);
    expect_disconnected(Errc::protocol_violation, "the peer ended a payload of 900 bytes after 0");
    expect_failed(asked, Errc::protocol_violation, "bytes after 0");
}

TEST_F(HostileCollectiveStream, a_stream_that_ends_before_its_header_disconnects_the_peer) {
    hostile_.finish(streams(part_stream(0)));
    pump();
    expect_disconnected(Errc::protocol_violation,
                        "the peer ended a payload stream before it sent the header");
}

TEST_F(HostileCollectiveStream, two_streams_for_one_message_disconnect_the_peer) {
    Asked& asked = broadcast(kBytes);
    says_part(streamed(0, 0));
    streams(part_stream(0) + slice(content_, 0, 100));
    expect_not_disconnected();
    streams(part_stream(0) + content_);
    EXPECT_EQ(asked.ended, 0);
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileCollectiveStream, two_streams_before_their_header_disconnect_the_peer) {
    streams(part_stream(4) + slice(content_, 0, 100));
    expect_not_disconnected();
    streams(part_stream(4) + slice(content_, 0, 100));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileCollectiveStream, two_streams_of_an_early_message_disconnect_the_peer) {
    streams(part_stream(0) + slice(content_, 0, 100));
    says_part(streamed(0, 0));
    expect_not_disconnected();
    streams(part_stream(0) + slice(content_, 0, 100));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileCollectiveStream, a_payload_on_the_lane_and_on_a_stream_disconnects_the_peer) {
    streams(part_stream(0) + slice(content_, 0, 100));
    says_part(part(0, 0, 100, 1));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileCollectiveStream, a_stream_for_a_payload_that_arrived_on_the_lane_is_refused) {
    Asked& asked = broadcast(100);
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    streams(part_stream(0) + content_);
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_succeeded(asked, pattern(1, 100));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, a_stream_of_an_unknown_communicator_is_refused) {
    streams(part_stream(0, ContextId(66)) + content_);
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, streams_of_a_cancelled_operation_are_refused) {
    Asked& asked = broadcast(kBytes);
    says_part(streamed(0, 0));
    const port::StreamId stream = streams(part_stream(0) + slice(content_, 0, 100));
    engine_->cancel(asked.collective);
    EXPECT_EQ(engine_->poll_done(), nullptr) << "the link may still write to its memory";
    pump();
    expect_failed(asked, Errc::cancelled, "rank 0 cancelled broadcast #0");
    more(stream, slice(content_, 100, 200));
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
    streams(part_stream(1) + content_);
    says_part(streamed(1, 0));
    pump();
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, a_reset_without_an_abort_fails_the_operation_after_five_seconds) {
    Asked& asked = broadcast(kBytes);
    pass(seconds(7));
    says_part(streamed(0, 0));
    hostile_.reset(streams(part_stream(0) + slice(content_, 0, 100)));
    pump();
    pass(milliseconds(4999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::link_closed, "rank 1 abandoned its part without giving a reason");
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, a_reset_before_the_call_fails_the_operation_after_five_seconds) {
    const port::StreamId stream = streams(part_stream(0) + slice(content_, 0, 100));
    says_part(streamed(0, 0));
    hostile_.reset(stream);
    pump();
    Asked& asked = broadcast(kBytes);
    pass(milliseconds(4999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::link_closed, "rank 1 abandoned its part without giving a reason");
    expect_not_disconnected();
}

TEST_F(HostileCollectiveStream, an_abort_after_a_reset_gives_the_reason) {
    Asked& asked = broadcast(kBytes);
    says_part(streamed(0, 0));
    hostile_.reset(streams(part_stream(0) + slice(content_, 0, 100)));
    pump();
    says_abort(0, "the disk is full");
    expect_failed(asked, Errc::invalid_argument, "the disk is full");
}

TEST_F(HostileCollectiveStream, a_refusal_without_an_abort_fails_the_operation_after_five_seconds) {
    Asked& asked = call_in(*duo_, kBytes, broadcast_call(kBytes, kMe));
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    hostile_.release(port::StreamId(hostile_.outgoing().begin()->first),
                     port::SendOutcome::refused);
    pump();
    EXPECT_EQ(asked.ended, 0);
    pass(seconds(5));
    expect_failed(asked, Errc::link_closed, "rank 1 abandoned its part without giving a reason");
}

TEST_F(HostileCollectiveStream, a_cancelled_operation_ends_when_the_link_releases_its_memory) {
    Asked& asked = call_in(*duo_, kBytes, broadcast_call(kBytes, kMe));
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    engine_->cancel(asked.collective);
    EXPECT_EQ(engine_->poll_done(), nullptr) << "the link may still read its memory";
    EXPECT_TRUE(hostile_.outgoing().begin()->second.cancelled);
    pump();
    expect_failed(asked, Errc::cancelled, "rank 0 cancelled");
}

/// What was in progress when the link went down.
enum class Moment : std::uint8_t {
    header_before_the_call,
    stream_before_its_header,
    both_before_the_call,
    half_a_payload_on_the_lane,
    reset_before_the_call,
    header_without_stream,
    half_a_stream,
    reset,
    other_fingerprint,
    own_stream,
    no_room,
};

class LinkGoesDown : public HostileCollectiveStream, public ::testing::WithParamInterface<Moment> {
protected:
    /// Brings the test to `moment`. Returns the operation, or null if it is called later.
    Asked* reach(Moment moment) {
        const auto half = part_stream(0) + slice(content_, 0, 100);
        switch (moment) {
            case Moment::both_before_the_call:
                streams(half);
                [[fallthrough]];
            case Moment::header_before_the_call:
                says_part(streamed(0, 0));
                return nullptr;
            case Moment::stream_before_its_header:
                streams(half);
                return nullptr;
            case Moment::half_a_payload_on_the_lane:
                says(Lane::eager, said(part(0, 0, kBytes, fingerprint(broadcast_call(kBytes), 0))) +
                                      slice(content_, 0, 100));
                return nullptr;
            case Moment::reset_before_the_call:
                says_part(streamed(0, 0));
                hostile_.reset(streams(half));
                pump();
                return nullptr;
            default:
                return called(moment, half);
        }
    }

    Asked* called(Moment moment, const Bytes& half) {
        if (moment == Moment::no_room) hostile_.set_room(Lane::eager, 0);
        if (moment == Moment::no_room || moment == Moment::own_stream) {
            return &call_in(*duo_, kBytes, broadcast_call(kBytes, kMe));
        }
        Asked& asked = broadcast(kBytes);
        auto header = streamed(0, 0);
        if (moment == Moment::other_fingerprint) ++header.fingerprint;
        says_part(header);
        if (moment == Moment::half_a_stream) streams(half);
        if (moment == Moment::reset) hostile_.reset(streams(half));
        pump();
        return &asked;
    }
};

TEST_P(LinkGoesDown, operation_fails_with_the_reason_of_the_link) {
    Asked* asked = reach(GetParam());
    expect_not_disconnected();
    if (asked != nullptr) {
        EXPECT_EQ(asked->ended, 0);
    }
    hostile_.go_down(Error(Errc::timed_out, "nothing was heard for 10 s"));
    pump();
    if (asked == nullptr) asked = &broadcast(kBytes);
    expect_failed(*asked, Errc::timed_out, "nothing was heard for 10 s");
    EXPECT_EQ(asked->error()->rank(), public_rank(kHostile));
    expect_failed(broadcast(kBytes), Errc::timed_out, "nothing was heard for 10 s");
    expect_other_peer_unaffected();
}

TEST_P(LinkGoesDown, communicator_can_end_afterwards) {
    reach(GetParam());
    hostile_.go_down(Error(Errc::timed_out, "nothing was heard for 10 s"));
    pump();
    engine_->end_context(*duo_);
    expect_other_peer_unaffected();
}

TEST_P(LinkGoesDown, cancel_just_before_decides_the_error) {
    Asked* asked = reach(GetParam());
    if (asked == nullptr) return;
    engine_->cancel(asked->collective);
    hostile_.go_down(Error(Errc::timed_out, "nothing was heard for 10 s"));
    pump();
    expect_failed(*asked, Errc::cancelled, "rank 0 cancelled");
}

INSTANTIATE_TEST_SUITE_P(
    moments, LinkGoesDown,
    ::testing::Values(Moment::header_before_the_call, Moment::stream_before_its_header,
                      Moment::both_before_the_call, Moment::half_a_payload_on_the_lane,
                      Moment::reset_before_the_call, Moment::header_without_stream,
                      Moment::half_a_stream, Moment::reset, Moment::other_fingerprint,
                      Moment::own_stream, Moment::no_room));

TEST_F(HostileCollectiveStream, data_that_arrived_completely_before_the_link_went_down_is_used) {
    says_part(part(0, 0, 100, fingerprint(broadcast_call(100), 0)));
    says_abort(1, "the disk is full");
    hostile_.go_down(Error(Errc::timed_out, "nothing was heard for 10 s"));
    pump();
    expect_succeeded(broadcast(100), pattern(1, 100));
    expect_failed(broadcast(100), Errc::invalid_argument, "the disk is full");
    expect_failed(broadcast(100), Errc::timed_out, "nothing was heard for 10 s");
}

}  // namespace
}  // namespace nexar::engine
