#include "link/quic/key_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hex.hpp"

// The values are those of RFC 9001 appendix A.
namespace nexar::quic {
namespace {

std::vector<std::uint8_t> copy(std::span<const std::uint8_t> bytes) {
    return {bytes.begin(), bytes.end()};
}

TEST(KeySchedule, makes_the_initial_secrets_and_keys_of_rfc_9001) {
    const InitialSecrets secrets = initial_secrets(unhex("8394c8f03e515708"));
    EXPECT_EQ(copy(secrets.client.span()),
              unhex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea"));
    EXPECT_EQ(copy(secrets.server.span()),
              unhex("3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b"));

    const PacketKeys client = derive_keys(CipherSuite::aes_128_gcm, secrets.client);
    EXPECT_EQ(copy(client.key_span()), unhex("1f369613dd76d5467730efcbe3b1a22d"));
    EXPECT_EQ(copy(client.iv), unhex("fa044b2f42a3fd3b46fb255c"));
    EXPECT_EQ(copy(client.header_key_span()), unhex("9f50449e04a0e810283a1e9933adedd2"));

    const PacketKeys server = derive_keys(CipherSuite::aes_128_gcm, secrets.server);
    EXPECT_EQ(copy(server.key_span()), unhex("cf3a5331653c364c88f0f379b6067e37"));
    EXPECT_EQ(copy(server.iv), unhex("0ac1493ca1905853b0bba03e"));
    EXPECT_EQ(copy(server.header_key_span()), unhex("c206b8d9b9f0f37644430b490eeaa314"));
}

TEST(KeySchedule, makes_the_chacha20_keys_of_rfc_9001_and_their_update) {
    const TrafficSecret secret(
        unhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b"));
    const PacketKeys keys = derive_keys(CipherSuite::chacha20_poly1305, secret);
    EXPECT_EQ(copy(keys.key_span()),
              unhex("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8"));
    EXPECT_EQ(copy(keys.iv), unhex("e0459b3474bdd0e44a41c144"));
    EXPECT_EQ(copy(keys.header_key_span()),
              unhex("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4"));
    EXPECT_EQ(copy(next_secret(secret).span()),
              unhex("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"));
}

TEST(KeySchedule, secrets_of_sha_384_keep_their_length) {
    std::vector<std::uint8_t> bytes(48);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
    const TrafficSecret secret(bytes);
    const TrafficSecret next = next_secret(secret);
    EXPECT_EQ(next.size, 48U);
    EXPECT_NE(copy(next.span()), bytes);
    const PacketKeys keys = derive_keys(CipherSuite::aes_256_gcm, secret);
    EXPECT_EQ(keys.key_span().size(), 32U);
    EXPECT_FALSE(std::ranges::equal(keys.key_span(), keys.header_key_span()));
}

}  // namespace
}  // namespace nexar::quic
