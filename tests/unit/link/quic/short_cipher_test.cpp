#include "link/quic/short_cipher.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace nexar::quic {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes counting(std::size_t size, std::uint8_t from) {
    Bytes bytes(size);
    std::iota(bytes.begin(), bytes.end(), from);
    return bytes;
}

class ShortCiphers : public ::testing::TestWithParam<CipherSuite> {
protected:
    Bytes key = counting(key_bytes(GetParam()), 7);
    Bytes nonce = counting(kNonceBytes, 90);
    Bytes header = counting(13, 200);
};

TEST_P(ShortCiphers, give_the_same_bytes_as_libcrypto) {
    ShortCipher by_nettle(GetParam(), key);
    PacketCipher by_libcrypto(GetParam(), PacketCipher::Direction::seal, key, 0);
    for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 255U, 1411U, 4096U}) {
        const Bytes plain = counting(size, 3);
        Bytes a(size + kTagBytes);
        Bytes b(size + kTagBytes);
        ASSERT_TRUE(by_nettle.seal(a.data(), plain, nonce, header));
        ASSERT_TRUE(by_libcrypto.seal(b.data(), plain, nonce, header));
        EXPECT_EQ(a, b) << size;
    }
}

TEST_P(ShortCiphers, seal_in_place) {
    ShortCipher cipher(GetParam(), key);
    const Bytes plain = counting(1200, 3);
    Bytes apart(plain.size() + kTagBytes);
    Bytes in_place = plain;
    in_place.resize(plain.size() + kTagBytes);
    ASSERT_TRUE(cipher.seal(apart.data(), plain, nonce, header));
    ASSERT_TRUE(cipher.seal(in_place.data(), {in_place.data(), plain.size()}, nonce, header));
    EXPECT_EQ(apart, in_place);
}

TEST_P(ShortCiphers, packets_on_either_side_of_the_limit_can_be_opened) {
    constexpr std::size_t kLimit = 600;
    PacketCipher seal(GetParam(), PacketCipher::Direction::seal, key, kLimit);
    PacketCipher open(GetParam(), PacketCipher::Direction::open, key, kLimit);
    for (const std::size_t size : {kLimit - 1, kLimit, kLimit + 1}) {
        const Bytes plain = counting(size, 3);
        Bytes sealed(size + kTagBytes);
        Bytes opened(size);
        ASSERT_TRUE(seal.seal(sealed.data(), plain, nonce, header));
        ASSERT_TRUE(open.open(opened.data(), sealed, nonce, header));
        EXPECT_EQ(opened, plain);
        sealed[size / 2] ^= 1;
        EXPECT_FALSE(open.open(opened.data(), sealed, nonce, header));
    }
}

INSTANTIATE_TEST_SUITE_P(Suites, ShortCiphers,
                         ::testing::Values(CipherSuite::aes_128_gcm, CipherSuite::aes_256_gcm));

TEST(LongestShortPacket, is_measured_once_and_only_for_aes) {
    EXPECT_EQ(longest_short_packet(CipherSuite::aes_128_gcm),
              longest_short_packet(CipherSuite::aes_128_gcm));
    EXPECT_LE(longest_short_packet(CipherSuite::aes_128_gcm), 4096U);
    EXPECT_EQ(longest_short_packet(CipherSuite::chacha20_poly1305), 0U);
    EXPECT_EQ(longest_short_packet(CipherSuite::checksum), 0U);
}

}  // namespace
}  // namespace nexar::quic
