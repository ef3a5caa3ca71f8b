#include "wire/optional_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "samples.hpp"
#include "wire/codec.hpp"

namespace nexar::wire {
namespace {

using testing::example;
using ::testing::HasSubstr;
using testing::with_extension;

Hello plain_hello() {
    return {.software = "nexar"};
}

TEST(OptionalFields, unknown_ones_are_skipped) {
    // example<Hello> has fields 1 and 2.
    const auto decoded =
        decode_frame(with_extension(example<Hello>(), "03 00 00 00 77 00 02 00 aa bb"));
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_EQ(std::get<Hello>(decoded->message), example<Hello>());
    EXPECT_EQ(decoded->skipped_fields, 2U);
}

TEST(OptionalFields, unknown_ones_are_skipped_next_to_known_ones) {
    // Field 2 of an error report, the context, is known; 1 and 3 as well; 4 is not.
    const ErrorReport bare{.text = "x"};
    const auto decoded =
        decode_frame(with_extension(bare, "02 00 08 00 01 02 03 04 05 06 07 08 04 00 01 00 ff"));
    ASSERT_TRUE(decoded) << decoded.error().what();
    const auto& report = std::get<ErrorReport>(decoded->message);
    EXPECT_EQ(report.context, ContextId(0x0807060504030201));
    EXPECT_FALSE(report.rank || report.sequence);
    EXPECT_EQ(decoded->skipped_fields, 1U);
}

TEST(OptionalFields, are_skipped_by_messages_that_define_none) {
    const auto decoded = decode_frame(with_extension(example<EagerHeader>(), "01 00 01 00 ff"));
    ASSERT_TRUE(decoded) << decoded.error().what();
    EXPECT_EQ(std::get<EagerHeader>(decoded->message), example<EagerHeader>());
    EXPECT_EQ(decoded->skipped_fields, 1U);
}

void expect_refused(std::string_view hex, Errc code, const std::string& words) {
    const auto decoded = decode_frame(with_extension(plain_hello(), hex));
    ASSERT_FALSE(decoded) << hex;
    EXPECT_EQ(decoded.error().code(), code) << decoded.error().what();
    EXPECT_THAT(decoded.error().cause(), HasSubstr(words));
}

TEST(OptionalFields, unknown_mandatory_ones_are_rejected) {
    expect_refused("01 80 00 00", Errc::unsupported, "hello: optional field 0x8001 is mandatory");
    expect_refused("77 00 00 00 ff ff 01 00 00", Errc::unsupported, "field 0xffff");
}

TEST(OptionalFields, must_strictly_ascend_from_1) {
    const auto rank = std::string("01 00 04 00 00 00 00 00 ");
    expect_refused(rank + rank, Errc::malformed, "optional field 1 follows field 1");
    expect_refused("77 00 00 00 76 00 00 00", Errc::malformed,
                   "optional field 118 follows field 119");
    expect_refused("77 00 00 00 " + rank, Errc::malformed, "optional field 1 follows field 119");
    expect_refused("00 00 00 00", Errc::malformed, "optional field 0 follows field 0");
}

TEST(OptionalFields, must_have_the_length_of_their_type) {
    expect_refused("01 00 03 00 00 00 00", Errc::malformed,
                   "optional field wanted_rank has 3 bytes; it must have 4");
    expect_refused("01 00 05 00 00 00 00 00 00", Errc::malformed, "has 5 bytes; it must have 4");
    expect_refused("02 00 00 00", Errc::malformed, "optional field host_id has 0 bytes");
}

TEST(OptionalFields, ones_that_hold_their_default_are_rejected) {
    expect_refused("02 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", Errc::malformed,
                   "optional field host_id holds its default");
    EXPECT_EQ(encoded_size(plain_hello()), kFrameHeaderBytes + 25) << "the encoder omits them";
}

TEST(OptionalFields, truncated_ones_are_rejected) {
    expect_refused("01", Errc::malformed,
                   "inside the header of an optional field: 1 left, 4 needed");
    expect_refused("01 00 04", Errc::malformed, "inside the header of an optional field: 3 left");
    expect_refused("01 00 04 00 00 00 00", Errc::malformed,
                   "inside an optional field: 3 left, 4 needed");
    expect_refused("77 00 ff ff 00", Errc::malformed, "inside an optional field: 1 left, 65535");
}

TEST(OptionalFields, do_not_hide_a_truncated_fixed_part) {
    // The header declares the whole body of a hello as optional fields, which leaves no fixed part.
    const auto decoded =
        decode_frame(testing::frame(FrameType::hello, testing::from_hex("77 00 00 00"), 4));
    ASSERT_FALSE(decoded);
    EXPECT_THAT(decoded.error().cause(), HasSubstr("the input ends inside min_version"));
}

}  // namespace
}  // namespace nexar::wire
