#include "wire/plain_envelope.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "samples.hpp"
#include "wire/codec.hpp"

namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::encoded;
using testing::example;
using testing::Random;
using testing::to_hex;

/// The envelope of a frame, with its packet behind it.
Bytes plainly_encoded(const EnvelopeFrame& frame) {
    const auto front = encode_envelope(frame, frame.packet.size());
    Bytes bytes(front.begin(), front.end());
    bytes.insert(bytes.end(), frame.packet.begin(), frame.packet.end());
    return bytes;
}

/// Checks that both decoders agree on these bytes. Returns true if they accept them.
bool agreed(const Bytes& bytes) {
    const auto view = decode_envelope(bytes);
    const auto frame = decode_frame(bytes);
    if (!frame || !std::holds_alternative<EnvelopeFrame>(frame->message)) {
        EXPECT_FALSE(view) << to_hex(bytes);
        const auto header = decode_frame_header(bytes);
        const bool other = header && header->type != FrameType::envelope;
        if (!frame && !view && !other) {
            EXPECT_EQ(view.error().code(), frame.error().code()) << to_hex(bytes);
            EXPECT_EQ(view.error().cause(), frame.error().cause()) << to_hex(bytes);
        }
        return false;
    }
    const auto& read = std::get<EnvelopeFrame>(frame->message);
    EXPECT_TRUE(view) << view.error().what() << to_hex(bytes);
    if (!view) return false;
    EXPECT_EQ(static_cast<const Envelope&>(*view), static_cast<const Envelope&>(read));
    EXPECT_TRUE(std::ranges::equal(view->packet, read.packet)) << to_hex(bytes);
    return true;
}

TEST(PlainEnvelope, agrees_with_the_encoder_of_all_frames) {
    Random random;
    for (int i = 0; i < 5'000; ++i) {
        const auto frame = testing::random_message<EnvelopeFrame>(random);
        ASSERT_EQ(plainly_encoded(frame), encoded(frame));
    }
    EXPECT_EQ(encoded(example<EnvelopeFrame>()).size(), kEnvelopeBytes + 1);
}

TEST(PlainEnvelope, agrees_with_the_decoder_of_all_frames) {
    Random random;
    for (int i = 0; i < 5'000; ++i) {
        ASSERT_TRUE(agreed(encoded(testing::random_message<EnvelopeFrame>(random))));
    }
}

TEST(PlainEnvelope, agrees_with_the_decoder_on_changed_frames) {
    Random random;
    Bytes whole = encoded(example<EnvelopeFrame>());
    whole.resize(60, std::byte{0x5a});
    store(whole.data() + 4, static_cast<std::uint32_t>(whole.size() - kFrameHeaderBytes));
    int accepted = 0;
    for (int i = 0; i < 50'000; ++i) {
        Bytes bytes = whole;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            bytes[random.below(kEnvelopeBytes)] = static_cast<std::byte>(random.below(256));
        }
        if (random.below(8) == 0) bytes.resize(random.below(bytes.size() + 1));
        accepted += agreed(bytes) ? 1 : 0;
    }
    EXPECT_GT(accepted, 1000);
}

TEST(PlainEnvelope, agrees_with_the_decoder_on_optional_fields) {
    EXPECT_TRUE(agreed(testing::with_extension(example<EnvelopeFrame>(), "01 00 01 00 ff")));
    EXPECT_FALSE(agreed(testing::with_extension(example<EnvelopeFrame>(), "01 80 01 00 ff")));
    EXPECT_FALSE(agreed(testing::with_extension(example<EnvelopeFrame>(), "01 00 02 00 ff")));
}

TEST(PlainEnvelope, agrees_with_the_decoder_on_every_length_of_a_packet) {
    auto frame = example<EnvelopeFrame>();
    for (const std::size_t size : {std::size_t{1}, kMaxPacketBytes - 1, kMaxPacketBytes}) {
        frame.packet.assign(size, std::byte{0x5a});
        EXPECT_TRUE(agreed(encoded(frame))) << size;
    }
    Bytes longer = encoded(frame);
    longer.push_back(std::byte{0x5a});
    store(longer.data() + 4, static_cast<std::uint32_t>(longer.size() - kFrameHeaderBytes));
    EXPECT_FALSE(agreed(longer));
    const Bytes whole = encoded(example<EnvelopeFrame>());
    for (std::size_t n = 0; n < whole.size(); ++n) {
        EXPECT_FALSE(agreed(Bytes(whole.begin(), whole.begin() + static_cast<int>(n)))) << n;
    }
}

TEST(PlainEnvelope, refers_to_the_packet_in_place) {
    const Bytes bytes = encoded(example<EnvelopeFrame>());
    const auto view = decode_envelope(bytes);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->packet.data(), bytes.data() + kEnvelopeBytes);
    EXPECT_EQ(view->packet.size(), 1U);
}

TEST(PlainEnvelope, of_another_type_is_rejected) {
    const auto refused = decode_envelope(encoded(example<Heartbeat>()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::malformed);
    EXPECT_THAT(refused.error().cause(), ::testing::HasSubstr("is of type heartbeat"));
}

TEST(PlainEnvelope, relays_change_only_the_hops) {
    Bytes bytes = encoded(example<EnvelopeFrame>());
    auto expected = example<EnvelopeFrame>();
    for (const std::uint8_t hops : {std::uint8_t{63}, std::uint8_t{1}, kMaxHops}) {
        set_hops(bytes, hops);
        expected.hops = hops;
        EXPECT_EQ(bytes, encoded(expected));
    }
}

TEST(PlainEnvelopeDeathTest, invalid_arguments_are_bugs) {
    Bytes bytes = encoded(example<EnvelopeFrame>());
    EXPECT_DEATH(set_hops(bytes, 0), "");
    EXPECT_DEATH(set_hops(bytes, kMaxHops + 1), "");
    Envelope envelope = example<EnvelopeFrame>();
    EXPECT_DEATH((void)encode_envelope(envelope, 0), "");
    EXPECT_DEATH((void)encode_envelope(envelope, kMaxPacketBytes + 1), "");
    envelope.target = envelope.source;
    EXPECT_DEATH((void)encode_envelope(envelope, 1), "within their limits");
}

}  // namespace
}  // namespace nexar::wire
