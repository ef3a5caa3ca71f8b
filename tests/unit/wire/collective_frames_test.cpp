#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "describe_checks.hpp"
#include "samples.hpp"
#include "wire/codec.hpp"

/// The limits and rules of collective frames, for encoder and decoder.
namespace nexar::wire {
namespace {

using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::letters;
using testing::patched;

constexpr std::size_t kSizeAt = 28;
constexpr std::size_t kPlaceAt = 44;
constexpr std::size_t kFromReserveAt = 45;
constexpr std::size_t kCodecAt = 46;

CollectiveHeader on_the_lane() {
    return changed<CollectiveHeader>([](auto& x) {
        x.size = 1000;
        x.place = PayloadPlace::lane;
    });
}

TEST(CollectiveHeader, limits_the_payload_on_the_lane) {
    const auto m = on_the_lane();
    expect_accepted(patched(m, kSizeAt, 0, 8));
    expect_accepted(patched(m, kSizeAt, kMaxEagerBytes, 8));
    expect_refused(patched(m, kSizeAt, kMaxEagerBytes + 1, 8), Errc::malformed,
                   "collective: size is 65537; it must be at most 65536 on the lane");
    expect_not_encoded(changed<CollectiveHeader>([](auto& x) {
                           x.place = PayloadPlace::lane;
                           x.size = kMaxEagerBytes + 1;
                       }),
                       "size is 65537; it must be at most 65536 on the lane");
}

TEST(CollectiveHeader, limits_the_payload_on_a_stream) {
    const auto m = example<CollectiveHeader>();
    expect_accepted(patched(m, kSizeAt, 1, 8));
    expect_accepted(patched(m, kSizeAt, kMaxByteCount, 8));
    expect_refused(patched(m, kSizeAt, 0, 8), Errc::malformed,
                   "collective: size is 0; it must be at least 1 on a stream");
    expect_refused(patched(m, kSizeAt, kMaxByteCount + 1, 8), Errc::limit_exceeded,
                   "collective: size is");
    expect_not_encoded(changed<CollectiveHeader>([](auto& x) { x.size = 0; }),
                       "size is 0; it must be at least 1 on a stream");
    expect_not_encoded(changed<CollectiveHeader>([](auto& x) { x.size = kMaxByteCount + 1; }),
                       "size is");
}

TEST(CollectiveHeader, rejects_unknown_places_reserves_and_codecs) {
    const auto m = on_the_lane();
    expect_accepted(patched(m, kPlaceAt, 1, 1));
    expect_refused(patched(m, kPlaceAt, 2, 1), Errc::malformed, "collective: place is 2");
    expect_accepted(patched(m, kFromReserveAt, 0, 1));
    expect_refused(patched(m, kFromReserveAt, 2, 1), Errc::limit_exceeded,
                   "collective: from_reserve is 2; it must be at most 1");
    expect_refused(patched(m, kCodecAt, 1, 1), Errc::unsupported,
                   "collective: codec is 1, which this build does not know");
    expect_not_encoded(
        changed<CollectiveHeader>([](auto& x) { x.place = static_cast<PayloadPlace>(2); }),
        "place is 2");
    expect_not_encoded(
        changed<CollectiveHeader>([](auto& x) { x.codec = static_cast<PayloadCodec>(1); }),
        "codec is 1");
}

TEST(CollectiveHeader, has_the_documented_layout) {
    EXPECT_EQ(encoded(example<CollectiveHeader>()),
              testing::from_hex("01 14 00 00 2f 00 00 00 15 7c 4a 7f b9 79 37 9e "
                                "05 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 02 00 00 00 "
                                "00 00 10 00 00 00 00 00 88 77 66 55 44 33 22 11 01 01 00"));
}

TEST(CollectiveMismatch, bounds_its_description) {
    const auto with = [](std::size_t n) {
        return changed<CollectiveMismatch>([&](auto& x) { x.description = letters(n); });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(kMaxReportTextBytes)));
    expect_refused(patched(with(7), 24, 1025, 2), Errc::limit_exceeded,
                   "collective_mismatch: description has 1025 bytes; the limit is 1024");
    expect_not_encoded(with(1025), "description has 1025 bytes");
    expect_refused(patched(with(7), 29, '\n', 1), Errc::malformed,
                   "collective_mismatch: description is invalid at byte 3");
}

TEST(CollectiveMismatch, bounds_the_expected_bytes) {
    const auto with = [](std::uint64_t n) {
        return changed<CollectiveMismatch>([&](auto& x) { x.expects = n; });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(kMaxByteCount)));
    expect_not_encoded(with(kMaxByteCount + 1), "expects");
    expect_refused(patched(with(0), 16, kMaxByteCount + 1, 8), Errc::limit_exceeded,
                   "collective_mismatch: expects");
}

TEST(CollectiveAbort, bounds_its_text) {
    const auto with = [](std::size_t n) {
        return changed<CollectiveAbort>([&](auto& x) { x.text = letters(n); });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(kMaxReportTextBytes)));
    expect_refused(patched(with(8), 23, 1025, 2), Errc::limit_exceeded,
                   "collective_abort: text has 1025 bytes; the limit is 1024");
    expect_not_encoded(with(1025), "text has 1025 bytes");
    expect_refused(patched(with(8), 29, '\n', 1), Errc::malformed,
                   "collective_abort: text is invalid at byte 4");
}

TEST(CollectiveAbort, gone_is_a_boolean) {
    expect_refused(patched(example<CollectiveAbort>(), 22, 2, 1), Errc::limit_exceeded,
                   "collective_abort: gone is 2; it must be at most 1");
}

TEST(CollectiveAbort, requires_a_code_and_keeps_unknown_ones) {
    const auto decoded = decode_frame(patched(example<CollectiveAbort>(), 16, 54321, 2));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(static_cast<unsigned>(std::get<CollectiveAbort>(decoded->message).code), 54321U);
    expect_refused(patched(example<CollectiveAbort>(), 16, 0, 2), Errc::malformed,
                   "collective_abort: code is 0; it must be at least 1");
    expect_not_encoded(changed<CollectiveAbort>([](auto& x) { x.code = Errc{}; }), "code is 0");
}

TEST(CollectiveFrames, travel_on_the_eager_lane_only) {
    for (const FrameType type :
         {FrameType::collective, FrameType::collective_mismatch, FrameType::collective_abort}) {
        EXPECT_TRUE(belongs_on(Lane::eager, type)) << name(type);
        EXPECT_FALSE(belongs_on(Lane::control, type)) << name(type);
        EXPECT_FALSE(belongs_on(Lane::rpc, type)) << name(type);
        EXPECT_FALSE(belongs_on(Lane::collective, type)) << name(type);
        EXPECT_FALSE(belongs_in_datagram(type)) << name(type);
    }
}

TEST(CollectiveFrames, with_the_largest_values_fit_the_frame_limits) {
    const auto room = [](const auto& message) {
        return rules_of(message.kType)->max_body_bytes - (encoded(message).size() - 8);
    };
    const std::string text = letters(kMaxReportTextBytes);
    EXPECT_EQ(room(example<CollectiveHeader>()), 201U);
    EXPECT_EQ(room(changed<CollectiveMismatch>([&](auto& x) { x.description = text; })), 990U);
    EXPECT_EQ(room(changed<CollectiveAbort>([&](auto& x) { x.text = text; })), 991U);
}

}  // namespace
}  // namespace nexar::wire
