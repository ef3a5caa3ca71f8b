#include "wire/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <variant>

#include "samples.hpp"

/// Properties of every message: it survives a round trip, it has exactly one encoding, and invalid
/// bytes are rejected.
namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::encoded;
using testing::Random;
using testing::to_hex;

template <class Message>
class EveryMessage : public ::testing::Test {};

struct MessageNames {
    template <class Message>
    static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
        return std::string(name(Message::kType));
    }
};

using Messages =
    ::testing::Types<Hello, Welcome, ErrorReport, Heartbeat, Credit, Grant, Withdraw, Confirm,
                     Abort, Agreement, LinkOffer, LinkRefusal, LinkReady, Moved, EagerHeader,
                     BulkHeader, ContextBegin, ContextEnd, CollectiveHeader, CollectiveMismatch,
                     CollectiveAbort, Request, Response, Cancel, Proof, JoinRequest, Admission,
                     ViewFrame, Formation, Renewal, LinkReport, StoredTokens, StoredSeed, Suspicion,
                     Ballot, Revoke, NewWorld, EnvelopeFrame, LinkState, PathRequest>;
TYPED_TEST_SUITE(EveryMessage, Messages, MessageNames);

Bytes encoded(const AnyMessage& message) {
    return std::visit([](const auto& m) { return encoded(m); }, message);
}

TYPED_TEST(EveryMessage, survives_the_round_trip) {
    Random random;
    for (int i = 0; i < 10'000; ++i) {
        const auto message = testing::random_message<TypeParam>(random);
        const Bytes bytes = encoded(message);
        const auto decoded = decode_frame(bytes);
        ASSERT_TRUE(decoded) << decoded.error().what() << "\nvalue " << i << ": " << to_hex(bytes);
        ASSERT_TRUE(std::get<TypeParam>(decoded->message) == message) << to_hex(bytes);
        ASSERT_EQ(decoded->skipped_fields, 0U);
    }
}

TYPED_TEST(EveryMessage, is_rejected_if_truncated_anywhere) {
    const Bytes bytes = encoded(testing::example<TypeParam>());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto decoded = decode_frame(std::span(bytes).first(n));
        ASSERT_FALSE(decoded) << n << " of " << bytes.size() << " bytes";
        EXPECT_EQ(decoded.error().code(), Errc::malformed);
        EXPECT_THAT(decoded.error().cause(), ::testing::HasSubstr("the input ends inside"));
    }
}

// The same within the body: the frame header is right, but the body is too short.
TYPED_TEST(EveryMessage, is_rejected_if_its_fixed_part_is_truncated_anywhere) {
    const Bytes whole = encoded(testing::example<TypeParam>());
    const auto header = decode_frame_header(whole);
    ASSERT_TRUE(header);
    const auto body = std::span(whole).subspan(kFrameHeaderBytes);
    const std::size_t fixed = body.size() - header->extension_bytes;
    for (std::size_t n = 0; n < fixed; ++n) {
        const FrameHeader shorter{.type = TypeParam::kType,
                                  .body_bytes = static_cast<std::uint32_t>(n)};
        const auto decoded = decode_body<TypeParam>(shorter, body.first(n));
        ASSERT_FALSE(decoded) << n << " of " << fixed << " bytes";
        EXPECT_EQ(decoded.error().code(), Errc::malformed);
        EXPECT_THAT(decoded.error().cause(), ::testing::HasSubstr("the input ends inside"));
    }
}

TYPED_TEST(EveryMessage, is_rejected_with_trailing_bytes) {
    Bytes bytes = encoded(testing::example<TypeParam>());
    for (int extra = 1; extra <= 16; ++extra) {
        bytes.push_back(static_cast<std::byte>(extra));
        const auto decoded = decode_frame(bytes);
        ASSERT_FALSE(decoded);
        EXPECT_EQ(decoded.error().code(), Errc::malformed);
        EXPECT_THAT(decoded.error().cause(),
                    ::testing::HasSubstr(std::to_string(extra) + " bytes follow the last field"));
    }
}

TYPED_TEST(EveryMessage, is_rejected_with_extra_bytes_in_its_body) {
    if constexpr (std::same_as<TypeParam, EnvelopeFrame>) return;  // they belong to its packet
    auto message = testing::example<TypeParam>();
    Bytes bytes = encoded(message);
    const auto header = *decode_frame_header(bytes);
    const auto fixed_end = static_cast<std::ptrdiff_t>(bytes.size() - header.extension_bytes);
    bytes.insert(bytes.begin() + fixed_end, std::byte{0});
    const FrameHeader longer{.type = header.type,
                             .extension_bytes = header.extension_bytes,
                             .body_bytes = header.body_bytes + 1};
    const auto decoded =
        decode_body<TypeParam>(longer, std::span(bytes).subspan(kFrameHeaderBytes));
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code(), Errc::malformed);
    EXPECT_THAT(decoded.error().cause(), ::testing::HasSubstr("1 bytes follow the last field"));
}

// One encoding per value: a changed frame that still decodes encodes to exactly those bytes.
TYPED_TEST(EveryMessage, is_canonical_under_every_change_of_one_byte) {
    const Bytes original = encoded(testing::example<TypeParam>());
    std::size_t accepted = 0;
    for (std::size_t at = 0; at < original.size(); ++at) {
        for (unsigned change = 1; change < 256; ++change) {
            Bytes bytes = original;
            bytes[at] ^= static_cast<std::byte>(change);
            const auto decoded = decode_frame(bytes);
            if (!decoded) continue;
            ++accepted;
            const Bytes again = encoded(decoded->message);
            if (decoded->skipped_fields == 0) {
                ASSERT_EQ(again, bytes) << "byte " << at << ": " << to_hex(bytes);
            } else {
                const auto once_more = decode_frame(again);
                ASSERT_TRUE(once_more && once_more->message == decoded->message) << to_hex(bytes);
            }
        }
    }
    // A body of one byte has only one other value.
    const std::size_t least = original.size() > kFrameHeaderBytes + 1 ? 1001 : 1;
    EXPECT_GE(accepted, least) << "changes of plain numbers must be accepted";
}

TYPED_TEST(EveryMessage, is_rejected_in_another_version) {
    Bytes bytes = encoded(testing::example<TypeParam>());
    for (const unsigned version : {0U, 2U, 255U}) {
        bytes[0] = static_cast<std::byte>(version);
        const auto decoded = decode_frame(bytes);
        ASSERT_FALSE(decoded);
        EXPECT_EQ(decoded.error().code(), Errc::version_mismatch);
    }
}

TYPED_TEST(EveryMessage, writes_nothing_to_a_buffer_that_is_too_small) {
    const auto message = testing::example<TypeParam>();
    const std::size_t size = encoded_size(message);
    Bytes room(size - 1, std::byte{0xaa});
    const auto written = encode(message, std::span<std::byte>(room));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), Errc::invalid_argument);
    EXPECT_EQ(written.error().cause(),
              "cannot encode " + std::string(name(TypeParam::kType)) + ": it takes " +
                  std::to_string(size) + " bytes, but the buffer has " + std::to_string(size - 1));
    EXPECT_EQ(room, Bytes(size - 1, std::byte{0xaa}));
}

TYPED_TEST(EveryMessage, encodes_to_the_front_of_a_larger_buffer) {
    const auto message = testing::example<TypeParam>();
    const Bytes exact = encoded(message);
    Bytes room(exact.size() + 3, std::byte{0xaa});
    const auto written = encode(message, std::span<std::byte>(room));
    ASSERT_TRUE(written);
    EXPECT_EQ(*written, exact.size());
    EXPECT_TRUE(std::equal(exact.begin(), exact.end(), room.begin()));
    EXPECT_EQ(room.back(), std::byte{0xaa});
}

TEST(Codec, message_headers_have_the_size_given_in_limits) {
    EXPECT_EQ(encoded_size(EagerHeader{}), kMessageHeaderFrameBytes);
    EXPECT_EQ(encoded_size(BulkHeader{}), kMessageHeaderFrameBytes);
    EXPECT_EQ(encoded_size(CollectiveHeader{}), kCollectiveHeaderFrameBytes);
    EXPECT_EQ(encoded_size(testing::example<CollectiveHeader>()), kCollectiveHeaderFrameBytes);
}

TEST(CodecDeathTest, decoding_a_body_as_another_message_is_a_bug) {
    const Bytes bytes = encoded(testing::example<Credit>());
    const auto header = *decode_frame_header(bytes);
    EXPECT_DEATH((void)decode_body<Grant>(header, std::span(bytes).subspan(kFrameHeaderBytes)),
                 "the frame header determines the decoder");
}

}  // namespace
}  // namespace nexar::wire
