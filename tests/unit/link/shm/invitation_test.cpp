#include "link/shm/invitation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "port/link.hpp"

namespace nexar::shm {
namespace {

InvitationText sample() {
    InvitationText text;
    for (std::size_t i = 0; i < 16; ++i) {
        text.boot[i] = static_cast<std::byte>(i);
        text.socket[i] = static_cast<std::byte>(i + 20);
        text.presented[i] = static_cast<std::byte>(i + 40);
        text.answered[i] = static_cast<std::byte>(i + 60);
    }
    text.user = 1000;
    return text;
}

TEST(shm_invitation, decodes_what_was_encoded) {
    const auto bytes = sample().encoded();
    EXPECT_LE(bytes.size(), port::kMaxInvitationBytes);
    const auto text = InvitationText::decode(bytes).value();
    EXPECT_EQ(text.boot, sample().boot);
    EXPECT_EQ(text.socket, sample().socket);
    EXPECT_EQ(text.presented, sample().presented);
    EXPECT_EQ(text.answered, sample().answered);
    EXPECT_EQ(text.user, 1000U);
}

TEST(shm_invitation, other_sizes_and_versions_are_refused) {
    auto bytes = sample().encoded();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_EQ(InvitationText::decode(port::ConstBytes(bytes).first(size)).error().code(),
                  Errc::malformed);
    }
    bytes[4] ^= std::byte{2};
    EXPECT_EQ(InvitationText::decode(bytes).error().code(), Errc::version_mismatch);
    bytes[0] ^= std::byte{1};
    EXPECT_EQ(InvitationText::decode(bytes).error().code(), Errc::malformed);
}

TEST(shm_invitation, greetings_and_share_notes_decode_what_was_encoded) {
    const Greeting greeting{
        .nonce = sample().presented, .ring_bytes = 1 << 20, .refusal = Refusal::unknown_nonce};
    const auto again = Greeting::decode(greeting.encoded());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->nonce, greeting.nonce);
    EXPECT_EQ(again->ring_bytes, greeting.ring_bytes);
    EXPECT_EQ(again->refusal, greeting.refusal);
    const ShareNote note{.name = 7, .bytes = 4096, .used = 99};
    const auto noted = ShareNote::decode(note.encoded());
    ASSERT_TRUE(noted.has_value());
    EXPECT_EQ(noted->name, 7U);
    EXPECT_EQ(noted->bytes, 4096U);
    EXPECT_EQ(noted->used, 99U);
    EXPECT_FALSE(Greeting::decode(note.encoded()).has_value());
    EXPECT_FALSE(ShareNote::decode(greeting.encoded()).has_value());
}

TEST(shm_invitation, a_greeting_with_an_unknown_refusal_is_refused) {
    auto bytes = Greeting{}.encoded();
    bytes[32] = std::byte{kRefusals};
    EXPECT_FALSE(Greeting::decode(bytes).has_value());
}

TEST(shm_invitation, nonces_are_compared_whole) {
    Nonce nonce = sample().presented;
    EXPECT_TRUE(same(nonce, sample().presented));
    for (std::byte& byte : nonce) {
        byte ^= std::byte{0x80};
        EXPECT_FALSE(same(nonce, sample().presented));
        byte ^= std::byte{0x80};
    }
}

TEST(shm_invitation, the_boot_id_stays_the_same) {
    EXPECT_EQ(boot_id().value(), boot_id().value());
    EXPECT_NE(boot_id().value(), BootId{});
}

}  // namespace
}  // namespace nexar::shm
