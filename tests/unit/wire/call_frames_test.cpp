#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "describe_checks.hpp"
#include "samples.hpp"
#include "wire/codec.hpp"

/// The limits and rules of call frames, for encoder and decoder.
namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::encoded;
using testing::example;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::patched;

Request by_number() {
    return {.call = CallId(1), .time_left = {}, .function = 7, .name = {}, .size = 8};
}

TEST(Request, has_a_number_or_a_name) {
    Request m = example<Request>();
    m.function = 1;
    expect_not_encoded(m, "function is 1; it must be 0 if there is a name");
    expect_refused(patched(example<Request>(), 16, 1, 2), Errc::malformed, "function is 1");
    m.function = 0;
    m.name = std::string(kMaxFunctionNameBytes, 'n');
    EXPECT_TRUE(decode_frame(encoded(m)));
    EXPECT_EQ(encoded(m).size(), kMaxCallFrameBytes);
    m.name += 'n';
    expect_not_encoded(m, "name has 65 bytes; the limit is 64");
    expect_refused(patched(example<Request>(), 18, 65, 2), Errc::limit_exceeded, "name");
}

TEST(Request, limits_the_payload_by_its_place) {
    const std::size_t size_at = 20;
    const std::size_t place_at = 28;
    EXPECT_TRUE(decode_frame(patched(by_number(), size_at, kMaxEagerBytes, 8)));
    expect_refused(patched(by_number(), size_at, kMaxEagerBytes + 1, 8), Errc::malformed,
                   "size is 65537; it must be at most 65536 on the lane");
    Request m = by_number();
    m.place = PayloadPlace::stream;
    m.size = kMaxByteCount;
    EXPECT_TRUE(decode_frame(encoded(m)));
    expect_refused(patched(m, size_at, kMaxByteCount + 1, 8), Errc::limit_exceeded, "size");
    expect_refused(patched(m, size_at, 0, 8), Errc::malformed, "at least 1 on a stream");
    expect_refused(patched(m, place_at, 2, 1), Errc::malformed, "place is 2");
}

TEST(Request, rejects_a_negative_time) {
    expect_refused(patched(by_number(), 8, ~std::uint64_t{0}, 8), Errc::limit_exceeded,
                   "time_left");
}

TEST(Response, has_a_payload_or_an_error) {
    Response m{.call = CallId(1), .code = {}, .text = {}, .size = 9};
    EXPECT_TRUE(decode_frame(encoded(m)));
    EXPECT_LE(encoded(m).size(), kMaxCallFrameBytes);
    m.text = "why";
    expect_not_encoded(m, "text length is 3; it must be 0 if the call succeeded");
    m.code = Errc::overloaded;
    expect_not_encoded(m, "size is 9; it must be 0 if the call failed");
    m.size = 0;
    EXPECT_TRUE(decode_frame(encoded(m)));
    m.text = std::string(kMaxReportTextBytes, 'w');
    EXPECT_TRUE(decode_frame(encoded(m)));
    m.text += 'w';
    expect_not_encoded(m, "text has 1025 bytes");
}

TEST(Response, keeps_an_unknown_code) {
    const auto decoded = decode_frame(patched(example<Response>(), 8, 0xfffe, 2));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(static_cast<unsigned>(std::get<Response>(decoded->message).code), 0xfffeU);
}

TEST(CallFrames, travel_on_the_rpc_lane_only) {
    for (const FrameType type : {FrameType::request, FrameType::response, FrameType::cancel}) {
        EXPECT_TRUE(belongs_on(Lane::rpc, type)) << name(type);
        EXPECT_FALSE(belongs_on(Lane::control, type)) << name(type);
        EXPECT_FALSE(belongs_on(Lane::eager, type)) << name(type);
        EXPECT_FALSE(belongs_in_datagram(type)) << name(type);
    }
    EXPECT_FALSE(belongs_on(Lane::rpc, FrameType::credit));
}

}  // namespace
}  // namespace nexar::wire
