#include "engine/calls.hpp"

#include "calls.hpp"

/// Calls between peers that follow the protocol.
namespace nexar::engine {
namespace {

class CallsOut : public CallsTest {};
class CallsIn : public CallsTest {};

TEST_F(CallsOut, writes_a_small_request_at_once_and_ends_with_the_answer) {
    Called& called = call(kHostile, 100, 2s);
    const auto requests = rpc_frames<wire::Request>();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].name, "echo");
    EXPECT_EQ(requests[0].size, 100U);
    EXPECT_EQ(requests[0].time_left, 2s);
    EXPECT_EQ(called.ended, 0);
    says(Lane::rpc, said(response(0, 60)) + pattern(5, 60));
    ASSERT_EQ(called.ended, 1);
    EXPECT_FALSE(called.call.error);
    EXPECT_EQ(called.call.response, pattern(5, 60));
    EXPECT_FALSE(engine_->calls().next_deadline()) << "an ended call has no deadline";
}

TEST_F(CallsOut, accepts_answers_in_any_order) {
    Called& first = call(kHostile, 1);
    Called& second = call(kHostile, 2);
    says(Lane::rpc, said(response(1, 9)) + pattern(1, 9) + said(response(0, 8)) + pattern(0, 8));
    EXPECT_EQ(first.call.response, pattern(0, 8));
    EXPECT_EQ(second.call.response, pattern(1, 9));
}

TEST_F(CallsOut, sends_a_large_request_on_a_stream_that_names_it) {
    Called& called = call(kHostile, 5000);
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    const auto& [stream, out] = *hostile_.outgoing().begin();
    EXPECT_EQ(out.prefix, stream_preamble(0, wire::CallPart::request));
    EXPECT_EQ(rpc_frames<wire::Request>().at(0).place, wire::PayloadPlace::stream);
    says(Lane::rpc, said(response(0, 0)));
    EXPECT_EQ(called.ended, 0) << "the link still reads its memory";
    hostile_.release(port::StreamId(stream), port::SendOutcome::delivered);
    pump();
    EXPECT_EQ(called.ended, 1);
    EXPECT_FALSE(called.call.error);
}

TEST_F(CallsOut, accepts_a_large_answer_that_arrives_before_or_after_its_frame) {
    Called& before = call(kHostile, 1);
    Called& after = call(kHostile, 1);
    const port::StreamId early =
        streams(stream_preamble(0, wire::CallPart::response) + pattern(1, 3000));
    says(Lane::rpc, said(response(0, 3000)) + said(response(1, 2000)));
    hostile_.finish(early);
    const port::StreamId late =
        streams(stream_preamble(1, wire::CallPart::response) + pattern(2, 2000));
    hostile_.finish(late);
    pump();
    ASSERT_EQ(before.ended, 1);
    EXPECT_EQ(before.call.response, pattern(1, 3000));
    ASSERT_EQ(after.ended, 1);
    EXPECT_EQ(after.call.response, pattern(2, 2000));
    expect_not_disconnected();
}

TEST_F(CallsOut, call_ends_with_the_error_of_the_peer) {
    Called& called = call(kHostile, 10);
    says(Lane::rpc,
         said(wire::Response{
             .call = wire::CallId(0), .code = Errc::function_failed, .text = "no such row"}));
    expect_failed(called, Errc::function_failed);
    EXPECT_EQ(called.call.error->cause(), "no such row");
}

TEST_F(CallsOut, refuses_a_request_that_is_too_large) {
    expect_failed(call(kHostile, 8193), Errc::limit_exceeded);
    EXPECT_TRUE(rpc_frames<wire::Request>().empty());
}

TEST_F(CallsOut, refuses_an_answer_of_the_wrong_size) {
    Called& large = call(kHostile, 1);
    large.call.max_response = 100;
    says(Lane::rpc, said(response(0, 101)) + pattern(0, 101));
    expect_failed(large, Errc::limit_exceeded);
    Called& streamed = call(kHostile, 1);
    says(Lane::rpc, said(response(1, 9000)));
    expect_failed(streamed, Errc::limit_exceeded);
    streams(stream_preamble(1, wire::CallPart::response));
    EXPECT_EQ(hostile_.incoming(), 0U) << "the payload is refused";
    Called& typed = call(kHostile, 1);
    typed.call.unit = 8;
    typed.call.single = true;
    says(Lane::rpc, said(response(2, 7)) + pattern(0, 7));
    expect_failed(typed, Errc::malformed);
    expect_not_disconnected();
}

TEST_F(CallsOut, call_times_out_and_its_late_answer_is_dropped) {
    Called& called = call(kHostile, 10, 50ms);
    EXPECT_EQ(engine_->calls().next_deadline(), now_ + 50ms);
    pass(49ms);
    EXPECT_EQ(called.ended, 0);
    pass(1ms);
    expect_failed(called, Errc::timed_out);
    ASSERT_EQ(rpc_frames<wire::Cancel>().size(), 1U);
    says(Lane::rpc, said(response(0, 20)) + pattern(0, 20));
    expect_not_disconnected();
    Called& next = call(kHostile, 1);
    says(Lane::rpc, said(response(1, 0)));
    EXPECT_FALSE(next.call.error);
}

TEST_F(CallsOut, cancelled_call_ends_at_once_and_the_peer_is_notified) {
    Called& small = call(kHostile, 10);
    Called& large = call(kHostile, 5000);
    engine_->cancel(small.call);
    engine_->cancel(large.call);
    pump();
    expect_failed(small, Errc::cancelled);
    expect_failed(large, Errc::cancelled);
    EXPECT_EQ(rpc_frames<wire::Cancel>().size(), 2U);
    EXPECT_TRUE(hostile_.outgoing().empty());
}

TEST_F(CallsOut, outcome_is_unknown_when_the_link_is_lost) {
    Called& written = call(kHostile, 10);
    Called& answering = call(kHostile, 10);
    says(Lane::rpc, said(response(1, 1000)));
    hostile_.set_room(Lane::rpc, 0);
    Called& unwritten = call(kHostile, 10);
    hostile_.go_down(Error(Errc::timed_out, "nothing was heard of it"));
    pump();
    expect_failed(written, Errc::outcome_unknown);
    expect_failed(answering, Errc::outcome_unknown);
    expect_failed(unwritten, Errc::link_closed);
    expect_failed(call(kHostile, 10), Errc::link_closed);
    EXPECT_EQ(rpc_frames<wire::Request>().size(), 2U) << "nothing is sent again";
}

TEST_F(CallsOut, calls_wait_for_room_in_order) {
    hostile_.set_room(Lane::rpc, 0);
    Called& first = call(kHostile, 10);
    Called& second = call(kHostile, 20);
    engine_->cancel(first.call);
    pump();
    expect_failed(first, Errc::cancelled);
    hostile_.set_room(Lane::rpc, 10'000);
    pump();
    const auto requests = rpc_frames<wire::Request>();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].size, 20U);
    EXPECT_EQ(requests[0].call, wire::CallId(0));
    says(Lane::rpc, said(response(0, 0)));
    EXPECT_EQ(second.ended, 1);
}

TEST_F(CallsIn, function_gets_caller_argument_and_deadline) {
    wire::Request made = request(0, 100);
    made.time_left = 3s;
    says(Lane::rpc, with_payload(made));
    InCall* call = next_call();
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->function, &function_);
    EXPECT_EQ(call->caller, kHostile);
    EXPECT_EQ(call->argument, pattern(0, 100));
    EXPECT_EQ(call->deadline, now_ + 3s);
    respond(*call, pattern(9, 40));
    const auto answers = rpc_frames<wire::Response>();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].code, Errc{});
    EXPECT_EQ(answers[0].size, 40U);
    EXPECT_FALSE(engine_->calls().next_deadline());
}

TEST_F(CallsIn, large_argument_and_answer_travel_on_streams) {
    const port::StreamId stream =
        streams(stream_preamble(0, wire::CallPart::request) + pattern(3, 600));
    EXPECT_EQ(next_call(), nullptr);
    says(Lane::rpc, said(request(0, 4000)));
    const Bytes whole = pattern(3, 4000);
    EXPECT_EQ(hostile_.arrive(stream, std::span(whole).subspan(600)), 3400U);
    hostile_.finish(stream);
    pump();
    InCall* call = next_call();
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->argument, pattern(3, 4000));
    respond(*call, pattern(4, 5000));
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    const auto& [number, out] = *hostile_.outgoing().begin();
    EXPECT_EQ(out.prefix, stream_preamble(0, wire::CallPart::response));
    const port::ConstBytes shown = out.source->regions().front();
    EXPECT_EQ(Bytes(shown.begin(), shown.end()), pattern(4, 5000));
    hostile_.release(port::StreamId(number), port::SendOutcome::delivered);
    pump();
}

TEST_F(CallsIn, rejected_calls_are_answered_at_once) {
    Function guarded;
    guarded.number = 7;
    guarded.callers = {{kHonest}};
    ASSERT_TRUE(engine_->calls().add(guarded));
    wire::Request by_number = request(1, 10, "");
    by_number.function = 7;
    says(Lane::rpc,
         with_payload(request(0, 10, "ech")) + with_payload(by_number) + said(request(2, 8193)));
    expect_answered(0, Errc::unknown_function);
    expect_answered(1, Errc::not_allowed);
    expect_answered(2, Errc::limit_exceeded);
    streams(stream_preamble(2, wire::CallPart::request));
    EXPECT_EQ(hostile_.incoming(), 0U) << "the payload is refused";
    EXPECT_EQ(next_call(), nullptr);
    honest_.arrive(Lane::rpc, said(wire::Request{.call = wire::CallId(0), .function = 7}));
    pump();
    InCall* call = next_call();
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->caller, kHonest);
    respond(*call, Bytes{});
    engine_->calls().remove(guarded);
}

TEST_F(CallsIn, two_functions_cannot_have_the_same_name) {
    Function same;
    same.name = "echo";
    EXPECT_EQ(engine_->calls().add(same).error().code(), Errc::invalid_argument);
}

TEST_F(CallsIn, limits_apply_per_caller) {
    for (std::uint64_t id = 0; id < 5; ++id) says(Lane::rpc, with_payload(request(id, 10)));
    expect_answered(4, Errc::overloaded);
    honest_.arrive(Lane::rpc, with_payload(request(0, 10)));
    pump();
    for (int i = 0; i < 5; ++i) {
        InCall* call = next_call();
        ASSERT_NE(call, nullptr) << i;
        respond(*call, Bytes{});
    }
    says(Lane::rpc, said(request(5, 6000)) + said(request(6, 5000)));
    expect_answered(6, Errc::overloaded);
    EXPECT_EQ(next_call(), nullptr);
    expect_not_disconnected();
}

TEST_F(CallsIn, cancelled_call_stops_the_function_and_is_answered_once) {
    says(Lane::rpc, with_payload(request(0, 10)) + with_payload(request(1, 10)));
    InCall* running = next_call();
    ASSERT_NE(running, nullptr);
    says(Lane::rpc, said(wire::Cancel{.call = wire::CallId(0)}) +
                        said(wire::Cancel{.call = wire::CallId(1)}) +
                        said(wire::Cancel{.call = wire::CallId(1)}));
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    EXPECT_EQ(engine_->calls().poll_stopped(), nullptr);
    EXPECT_EQ(next_call(), nullptr) << "a call that has not started never runs";
    respond(*running, pattern(0, 8));
    expect_answered(0, Errc::cancelled);
    expect_answered(1, Errc::cancelled);
}

TEST_F(CallsIn, call_past_its_deadline_stops_the_function_and_is_answered) {
    wire::Request made = request(0, 10);
    made.time_left = 20ms;
    says(Lane::rpc, with_payload(made));
    InCall* running = next_call();
    pass(20ms);
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    expect_answered(0, Errc::timed_out);
    respond(*running, Bytes{});
    expect_answered(0, Errc::timed_out);
}

TEST_F(CallsIn, function_stops_when_its_caller_dies) {
    says(Lane::rpc, with_payload(request(0, 10)) + with_payload(request(1, 10)));
    InCall* running = next_call();
    hostile_.go_down(Error(Errc::timed_out, "dead"));
    pump();
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    EXPECT_EQ(next_call(), nullptr);
    respond(*running, pattern(0, 5000));
}

TEST_F(CallsIn, calls_end_when_the_node_closes) {
    says(Lane::rpc, with_payload(request(0, 10)) + with_payload(request(1, 10)));
    InCall* running = next_call();
    engine_->close();
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    expect_answered(1, Errc::link_closed);
    respond(*running, Bytes{});
}

TEST_F(CallsIn, call_fails_when_the_answer_is_too_large) {
    says(Lane::rpc, with_payload(request(0, 10)));
    respond(*next_call(), Bytes(8193));
    expect_answered(0, Errc::limit_exceeded);
}

TEST_F(CallsIn, calls_of_a_removed_function_are_answered) {
    says(Lane::rpc, with_payload(request(0, 10)));
    engine_->calls().remove(function_);
    expect_answered(0, Errc::unknown_function);
    EXPECT_EQ(next_call(), nullptr);
}

TEST_F(CallsOut, calls_to_this_node_need_no_link) {
    Called& called = call(kMe, 300);
    InCall* in = next_call();
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(in->caller, kMe);
    EXPECT_EQ(in->argument, pattern(300, 300));
    respond(*in, pattern(1, 4000));
    ASSERT_EQ(called.ended, 1);
    EXPECT_EQ(called.call.response, pattern(1, 4000));

    Called& late = call(kMe, 1, 10ms);
    InCall* running = next_call();
    pass(10ms);
    expect_failed(late, Errc::timed_out);
    EXPECT_EQ(engine_->calls().poll_stopped(), running);
    respond(*running, Bytes{});

    Called& cancelled = call(kMe, 1);
    engine_->cancel(cancelled.call);
    pump();
    expect_failed(cancelled, Errc::cancelled);
    EXPECT_EQ(next_call(), nullptr);
}

}  // namespace
}  // namespace nexar::engine
