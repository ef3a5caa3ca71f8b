#include "calls.hpp"

/// A peer that violates the rules of calls is disconnected, and the other peer is unaffected.
namespace nexar::engine {
namespace {

using HostileCalls = CallsTest;

TEST_F(HostileCalls, an_answer_to_a_call_never_made_disconnects_the_peer) {
    says(Lane::rpc, said(response(0, 0)));
    expect_disconnected(Errc::protocol_violation, "answered a call that was never made");
}

TEST_F(HostileCalls, a_second_answer_disconnects_the_peer) {
    Called& called = call(kHostile, 1);
    says(Lane::rpc, said(response(0, 0)));
    EXPECT_EQ(called.ended, 1);
    says(Lane::rpc, said(response(0, 0)));
    expect_disconnected(Errc::protocol_violation, "answered it twice");
}

TEST_F(HostileCalls, a_second_answer_before_the_payload_disconnects_the_peer) {
    Called& called = call(kHostile, 1);
    says(Lane::rpc, said(response(0, 1000)) + said(response(0, 1000)));
    expect_disconnected(Errc::protocol_violation, "answered one call twice");
    expect_failed(called, Errc::outcome_unknown);
}

TEST_F(HostileCalls, a_second_answer_to_a_cancelled_call_disconnects_the_peer) {
    Called& called = call(kHostile, 1);
    engine_->cancel(called.call);
    says(Lane::rpc, said(response(0, 0)));
    expect_not_disconnected();
    says(Lane::rpc, said(response(0, 0)));
    expect_disconnected(Errc::protocol_violation, "answered it twice");
}

TEST_F(HostileCalls, a_repeated_call_number_disconnects_the_peer) {
    says(Lane::rpc, with_payload(request(0, 10)));
    says(Lane::rpc, with_payload(request(0, 10)));
    expect_disconnected(Errc::protocol_violation, "the peer sent call 0, but call 1 was expected");
    EXPECT_EQ(next_call(), nullptr) << "the function does not run";
}

TEST_F(HostileCalls, a_skipped_call_number_disconnects_the_peer) {
    says(Lane::rpc, with_payload(request(1, 10)));
    expect_disconnected(Errc::protocol_violation, "the peer sent call 1, but call 0 was expected");
}

TEST_F(HostileCalls, cancelling_a_call_never_made_disconnects_the_peer) {
    says(Lane::rpc, said(wire::Cancel{.call = wire::CallId(0)}));
    expect_disconnected(Errc::protocol_violation, "cancelled a call that it never made");
}

TEST_F(HostileCalls, a_payload_longer_than_announced_disconnects_the_peer) {
    says(Lane::rpc, said(request(0, 1000)));
    streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 1001));
    expect_disconnected(Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileCalls, a_payload_shorter_than_announced_disconnects_the_peer) {
    says(Lane::rpc, said(request(0, 1000)));
    hostile_.finish(streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 999)));
    pump();
    expect_disconnected(Errc::protocol_violation,
                        "the peer ended a payload of 1000 bytes after 999");
}

TEST_F(HostileCalls, one_payload_on_two_streams_disconnects_the_peer) {
    says(Lane::rpc, said(request(0, 1000)));
    streams(stream_preamble(0, wire::CallPart::request));
    streams(stream_preamble(0, wire::CallPart::request));
    expect_disconnected(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, one_payload_on_two_streams_before_its_frame_disconnects_the_peer) {
    streams(stream_preamble(0, wire::CallPart::request));
    streams(stream_preamble(0, wire::CallPart::request));
    expect_disconnected(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, a_payload_on_a_stream_and_on_the_lane_disconnects_the_peer) {
    streams(stream_preamble(0, wire::CallPart::request));
    says(Lane::rpc, with_payload(request(0, 10)));
    expect_disconnected(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, an_answer_on_a_stream_and_on_the_lane_disconnects_the_peer) {
    call(kHostile, 1);
    streams(stream_preamble(0, wire::CallPart::response));
    says(Lane::rpc, said(response(0, 10)) + pattern(0, 10));
    expect_disconnected(Errc::protocol_violation, "the payload of one answer twice");
}

TEST_F(HostileCalls, a_streamed_answer_to_a_call_never_made_disconnects_the_peer) {
    streams(stream_preamble(0, wire::CallPart::response));
    expect_disconnected(Errc::protocol_violation, "answered a call that was never made");
}

TEST_F(HostileCalls, a_payload_that_ends_before_its_frame_disconnects_the_peer) {
    call(kHostile, 1);
    hostile_.finish(streams(stream_preamble(0, wire::CallPart::response)));
    pump();
    expect_disconnected(Errc::protocol_violation, "before it sent the header");
}

TEST_F(HostileCalls, a_request_whose_payload_is_reset_is_answered_with_cancelled) {
    says(Lane::rpc, said(request(0, 1000)));
    hostile_.reset(streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 10)));
    pump();
    expect_answered(0, Errc::cancelled);
    expect_not_disconnected();
}

TEST_F(HostileCalls, the_outcome_is_unknown_when_the_answer_is_reset) {
    Called& early = call(kHostile, 1);
    hostile_.reset(streams(stream_preamble(0, wire::CallPart::response)));
    pump();
    expect_failed(early, Errc::outcome_unknown);
    says(Lane::rpc, said(response(0, 1000)));
    expect_not_disconnected();
    Called& late = call(kHostile, 1);
    says(Lane::rpc, said(response(1, 1000)));
    hostile_.reset(streams(stream_preamble(1, wire::CallPart::response) + pattern(0, 10)));
    pump();
    expect_failed(late, Errc::outcome_unknown);
}

TEST_F(HostileCalls, a_peer_that_never_answers_is_disconnected) {
    for (int i = 0; i < 9; ++i) engine_->cancel(call(kHostile, 1).call);
    pump();
    expect_disconnected(Errc::limit_exceeded, "does not answer calls that were cancelled");
}

TEST_F(HostileCalls, a_peer_that_floods_calls_and_reads_no_answers_is_disconnected) {
    hostile_.set_room(Lane::rpc, 0);
    std::uint64_t id = 0;
    for (; id < 20 && !hostile_.closed(); ++id) says(Lane::rpc, said(request(id, 0, "none")));
    EXPECT_EQ(id, 17U) << "one more than the peer may leave unread";
    expect_disconnected(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCalls, memory_held_for_one_peer_is_limited) {
    // Answers that the peer does not read count as well.
    says(Lane::rpc, with_payload(request(0, 10)) + with_payload(request(1, 10)));
    respond(*next_call(), Bytes(6000));
    respond(*next_call(), Bytes(6000));
    expect_answered(0, Errc{});
    expect_answered(1, Errc::overloaded);
    says(Lane::rpc, said(request(2, 5000)));
    expect_answered(2, Errc::overloaded);
    expect_not_disconnected();
}

TEST_F(HostileCalls, a_credit_frame_on_the_rpc_lane_disconnects_the_peer) {
    says(Lane::rpc, said(wire::Credit{.headers = 1}));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent a frame of type credit on the rpc lane");
}

}  // namespace
}  // namespace nexar::engine
