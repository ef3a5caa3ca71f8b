#include "calls.hpp"

/// A peer that breaks the rules of calls is cut off, and nobody else notices.
namespace nexar::engine {
namespace {

using HostileCalls = CallsTest;

TEST_F(HostileCalls, answers_a_call_that_was_never_made) {
    says(Lane::rpc, said(response(0, 0)));
    expect_cut_off(Errc::protocol_violation, "answered a call that was never made");
}

TEST_F(HostileCalls, answers_twice) {
    Called& called = call(kHostile, 1);
    says(Lane::rpc, said(response(0, 0)));
    EXPECT_EQ(called.ended, 1);
    says(Lane::rpc, said(response(0, 0)));
    expect_cut_off(Errc::protocol_violation, "answered it twice");
}

TEST_F(HostileCalls, answers_twice_while_the_payload_comes) {
    Called& called = call(kHostile, 1);
    says(Lane::rpc, said(response(0, 1000)) + said(response(0, 1000)));
    expect_cut_off(Errc::protocol_violation, "answered one call twice");
    expect_failed(called, Errc::outcome_unknown);
}

TEST_F(HostileCalls, answers_a_call_twice_that_was_given_up) {
    Called& called = call(kHostile, 1);
    engine_->cancel(called.call);
    says(Lane::rpc, said(response(0, 0)));
    expect_not_cut_off();
    says(Lane::rpc, said(response(0, 0)));
    expect_cut_off(Errc::protocol_violation, "answered it twice");
}

TEST_F(HostileCalls, uses_a_number_again) {
    says(Lane::rpc, with_payload(request(0, 10)));
    says(Lane::rpc, with_payload(request(0, 10)));
    expect_cut_off(Errc::protocol_violation, "the peer sent call 0, but call 1 was expected");
    EXPECT_EQ(taken(), nullptr) << "what it asked for is not run";
}

TEST_F(HostileCalls, skips_a_number) {
    says(Lane::rpc, with_payload(request(1, 10)));
    expect_cut_off(Errc::protocol_violation, "the peer sent call 1, but call 0 was expected");
}

TEST_F(HostileCalls, cancels_what_it_never_called) {
    says(Lane::rpc, said(wire::Cancel{.call = wire::CallId(0)}));
    expect_cut_off(Errc::protocol_violation, "cancelled a call that it never made");
}

TEST_F(HostileCalls, sends_more_than_it_said) {
    says(Lane::rpc, said(request(0, 1000)));
    streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 1001));
    expect_cut_off(Errc::protocol_violation, "longer than its header said");
}

TEST_F(HostileCalls, sends_less_than_it_said) {
    says(Lane::rpc, said(request(0, 1000)));
    hostile_.finish(streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 999)));
    pump();
    expect_cut_off(Errc::protocol_violation, "the peer ended a payload of 1000 bytes after 999");
}

TEST_F(HostileCalls, sends_one_payload_on_two_streams) {
    says(Lane::rpc, said(request(0, 1000)));
    streams(stream_preamble(0, wire::CallPart::request));
    streams(stream_preamble(0, wire::CallPart::request));
    expect_cut_off(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, sends_one_payload_on_two_streams_before_its_frame) {
    streams(stream_preamble(0, wire::CallPart::request));
    streams(stream_preamble(0, wire::CallPart::request));
    expect_cut_off(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, sends_one_payload_on_a_stream_and_on_the_lane) {
    streams(stream_preamble(0, wire::CallPart::request));
    says(Lane::rpc, with_payload(request(0, 10)));
    expect_cut_off(Errc::protocol_violation, "the payload of one call twice");
}

TEST_F(HostileCalls, sends_an_answer_on_a_stream_and_on_the_lane) {
    call(kHostile, 1);
    streams(stream_preamble(0, wire::CallPart::response));
    says(Lane::rpc, said(response(0, 10)) + pattern(0, 10));
    expect_cut_off(Errc::protocol_violation, "the payload of one answer twice");
}

TEST_F(HostileCalls, streams_an_answer_to_nothing) {
    streams(stream_preamble(0, wire::CallPart::response));
    expect_cut_off(Errc::protocol_violation, "answered a call that was never made");
}

TEST_F(HostileCalls, ends_a_payload_before_its_frame) {
    call(kHostile, 1);
    hostile_.finish(streams(stream_preamble(0, wire::CallPart::response)));
    pump();
    expect_cut_off(Errc::protocol_violation, "before it sent the header");
}

TEST_F(HostileCalls, gives_a_payload_up_and_is_answered) {
    says(Lane::rpc, said(request(0, 1000)));
    hostile_.reset(streams(stream_preamble(0, wire::CallPart::request) + pattern(0, 10)));
    pump();
    expect_answered(0, Errc::cancelled);
    expect_not_cut_off();
}

TEST_F(HostileCalls, gives_an_answer_up_and_the_outcome_is_unknown) {
    Called& early = call(kHostile, 1);
    hostile_.reset(streams(stream_preamble(0, wire::CallPart::response)));
    pump();
    expect_failed(early, Errc::outcome_unknown);
    says(Lane::rpc, said(response(0, 1000)));
    expect_not_cut_off();
    Called& late = call(kHostile, 1);
    says(Lane::rpc, said(response(1, 1000)));
    hostile_.reset(streams(stream_preamble(1, wire::CallPart::response) + pattern(0, 10)));
    pump();
    expect_failed(late, Errc::outcome_unknown);
}

TEST_F(HostileCalls, does_not_answer_for_ever) {
    for (int i = 0; i < 9; ++i) engine_->cancel(call(kHostile, 1).call);
    pump();
    expect_cut_off(Errc::limit_exceeded, "does not answer calls that were cancelled");
}

TEST_F(HostileCalls, calls_in_a_flood_and_does_not_read_the_answers) {
    hostile_.set_room(Lane::rpc, 0);
    std::uint64_t id = 0;
    for (; id < 20 && !hostile_.closed(); ++id) says(Lane::rpc, said(request(id, 0, "none")));
    EXPECT_EQ(id, 17U) << "one more than it may leave unread";
    expect_cut_off(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCalls, makes_the_node_hold_no_more_than_is_allowed) {
    // Answers that it does not read count as well.
    says(Lane::rpc, with_payload(request(0, 10)) + with_payload(request(1, 10)));
    respond(*taken(), Bytes(6000));
    respond(*taken(), Bytes(6000));
    expect_answered(0, Errc{});
    expect_answered(1, Errc::overloaded);
    says(Lane::rpc, said(request(2, 5000)));
    expect_answered(2, Errc::overloaded);
    expect_not_cut_off();
}

TEST_F(HostileCalls, says_what_no_lane_of_calls_carries) {
    says(Lane::rpc, said(wire::Credit{.headers = 1}));
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent a frame of type credit on the rpc lane");
}

}  // namespace
}  // namespace nexar::engine
