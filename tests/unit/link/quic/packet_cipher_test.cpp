#include "link/quic/packet_cipher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hex.hpp"
#include "link/quic/key_schedule.hpp"

namespace nexar::quic {
namespace {

using Octets = std::vector<std::uint8_t>;
using Direction = PacketCipher::Direction;

Octets octets(std::size_t size, unsigned seed) {
    Octets bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 + seed);
    return bytes;
}

/// RFC 9001 5.3: the packet number XORed into the end of the IV.
Octets nonce_of(const PacketKeys& keys, std::uint64_t number) {
    Octets nonce(keys.iv.begin(), keys.iv.end());
    for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] ^= static_cast<std::uint8_t>(number >> 8 * i);
    return nonce;
}

Octets sealed(PacketCipher& cipher, const Octets& plain, const Octets& nonce,
              const Octets& header) {
    Octets out(plain.size() + kTagBytes);
    EXPECT_TRUE(cipher.seal(out.data(), plain, nonce, header));
    return out;
}

// RFC 9001 A.2
TEST(PacketCipher, seals_the_client_initial_of_rfc_9001) {
    const auto secret = initial_secrets(unhex("8394c8f03e515708")).client;
    const PacketKeys keys = derive_keys(CipherSuite::aes_128_gcm, secret);
    Octets plain = unhex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c0000"
        "04130113020100"
        "00c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d001700180010000700"
        "0504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa"
        "71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408050806002d0002"
        "0101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000753009"
        "01100f088394c8f03e51570806048000ffff");
    plain.resize(1162);
    const Octets header = unhex("c300000001088394c8f03e5157080000449e00000002");
    PacketCipher cipher(CipherSuite::aes_128_gcm, Direction::seal, keys.key_span());
    const Octets out = sealed(cipher, plain, nonce_of(keys, 2), header);
    EXPECT_EQ(Octets(out.begin(), out.begin() + 32),
              unhex("d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec356c0bab7df5976d"));
    EXPECT_EQ(Octets(out.end() - 16, out.end()), unhex("e221af44860018ab0856972e194cd934"));

    HeaderMask mask(CipherSuite::aes_128_gcm, keys.header_key_span());
    std::array<std::uint8_t, kMaskBytes> bits{};
    ASSERT_TRUE(mask.make(bits, std::span(out).first<kSampleBytes>()));
    EXPECT_EQ(Octets(bits.begin(), bits.end()), unhex("437b9aec36"));
}

// RFC 9001 A.3
TEST(PacketCipher, opens_the_server_initial_of_rfc_9001) {
    const auto secret = initial_secrets(unhex("8394c8f03e515708")).server;
    const PacketKeys keys = derive_keys(CipherSuite::aes_128_gcm, secret);
    const Octets packet = unhex(
        "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3"
        "dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06ed"
        "bb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee");
    const Octets header = unhex("c1000000010008f067a5502a4262b50040750001");
    PacketCipher cipher(CipherSuite::aes_128_gcm, Direction::open, keys.key_span());
    Octets plain(packet.size() - kTagBytes);
    ASSERT_TRUE(cipher.open(plain.data(), packet, nonce_of(keys, 1), header));
    EXPECT_EQ(plain, unhex("02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc7"
                           "9825df566dc5430b9a045a1200130100002e00330024001d00209d3c940d89690b84d0"
                           "8a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304"));
    HeaderMask mask(CipherSuite::aes_128_gcm, keys.header_key_span());
    std::array<std::uint8_t, kMaskBytes> bits{};
    ASSERT_TRUE(mask.make(bits, std::span(packet).subspan<2, kSampleBytes>()));
    EXPECT_EQ(Octets(bits.begin(), bits.end()), unhex("2ec0d8356a"));
}

// RFC 9001 A.4: a Retry carries the tag of an empty text, with the whole packet as header.
TEST(PacketCipher, makes_the_integrity_tag_of_the_retry_of_rfc_9001) {
    PacketCipher cipher(CipherSuite::aes_128_gcm, Direction::seal, retry_key());
    const Octets header = unhex("088394c8f03e515708ff000000010008f067a5502a4262b5746f6b656e");
    EXPECT_EQ(sealed(cipher, {}, unhex("461599d35d632bf2239825bb"), header),
              unhex("04a265ba2eff4d829058fb3f0f2496ba"));
}

// RFC 9001 A.5
TEST(PacketCipher, seals_the_chacha20_packet_of_rfc_9001) {
    const PacketKeys keys = derive_keys(
        CipherSuite::chacha20_poly1305,
        TrafficSecret(unhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b")));
    PacketCipher cipher(CipherSuite::chacha20_poly1305, Direction::seal, keys.key_span());
    const Octets out = sealed(cipher, unhex("01"), nonce_of(keys, 654'360'564), unhex("4200bff4"));
    EXPECT_EQ(out, unhex("655e5cd55c41f69080575d7999c25a5bfb"));
    HeaderMask mask(CipherSuite::chacha20_poly1305, keys.header_key_span());
    std::array<std::uint8_t, kMaskBytes> bits{};
    ASSERT_TRUE(mask.make(bits, std::span(out).subspan<1, kSampleBytes>()));
    EXPECT_EQ(Octets(bits.begin(), bits.end()), unhex("aefefe7d03"));
}

std::string suite_name(CipherSuite suite) {
    constexpr std::array kNames{"aes_128_gcm", "aes_256_gcm", "chacha20_poly1305", "checksum"};
    return kNames[static_cast<std::size_t>(suite)];
}

class EverySuite : public ::testing::TestWithParam<CipherSuite> {
protected:
    PacketKeys keys_ = derive_keys(GetParam(), TrafficSecret(octets(32, 5)));
    PacketCipher seal_{GetParam(), Direction::seal, keys_.key_span()};
    PacketCipher open_{GetParam(), Direction::open, keys_.key_span()};
    Octets header_ = octets(19, 90);
    Octets nonce_ = nonce_of(keys_, 77);
};

INSTANTIATE_TEST_SUITE_P(Suites, EverySuite,
                         ::testing::Values(CipherSuite::aes_128_gcm, CipherSuite::aes_256_gcm,
                                           CipherSuite::chacha20_poly1305, CipherSuite::checksum),
                         [](const auto& suite) { return suite_name(suite.param); });

TEST_P(EverySuite, opens_its_own_packets_of_any_size) {
    for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 240U, 241U, 1200U, 9000U, 65'000U}) {
        const Octets plain = octets(size, 3);
        const Octets cipher = sealed(seal_, plain, nonce_, header_);
        Octets back(size + 1);
        ASSERT_TRUE(open_.open(back.data(), cipher, nonce_, header_)) << size;
        EXPECT_TRUE(std::equal(plain.begin(), plain.end(), back.begin())) << size;
    }
}

TEST_P(EverySuite, seals_in_place) {
    const Octets plain = octets(1000, 3);
    Octets packet = plain;
    packet.resize(1016);
    ASSERT_TRUE(seal_.seal(packet.data(), std::span(packet).first(1000), nonce_, header_));
    EXPECT_EQ(packet, sealed(seal_, plain, nonce_, header_));
}

TEST_P(EverySuite, detects_every_flipped_bit) {
    const Octets cipher = sealed(seal_, octets(60, 3), nonce_, header_);
    Octets back(cipher.size());
    const auto noticed = [&](const Octets& packet, const Octets& nonce, const Octets& header) {
        return !open_.open(back.data(), packet, nonce, header);
    };
    ASSERT_FALSE(noticed(cipher, nonce_, header_));
    const auto flipped = [](Octets bytes, std::size_t bit) {
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        return bytes;
    };
    for (std::size_t bit = 0; bit < cipher.size() * 8; ++bit) {
        ASSERT_TRUE(noticed(flipped(cipher, bit), nonce_, header_)) << bit;
    }
    for (std::size_t bit = 0; bit < header_.size() * 8; ++bit) {
        ASSERT_TRUE(noticed(cipher, nonce_, flipped(header_, bit))) << bit;
    }
    for (std::size_t bit = 0; bit < nonce_.size() * 8; ++bit) {
        ASSERT_TRUE(noticed(cipher, flipped(nonce_, bit), header_)) << bit;
    }
    EXPECT_FALSE(noticed(cipher, nonce_, header_)) << "a rejected packet changes nothing";
}

TEST_P(EverySuite, rejects_truncated_packets_and_other_keys) {
    const Octets cipher = sealed(seal_, octets(60, 3), nonce_, header_);
    Octets back(cipher.size());
    for (std::size_t size = 0; size < cipher.size(); ++size) {
        EXPECT_FALSE(open_.open(back.data(), std::span(cipher).first(size), nonce_, header_));
    }
    const PacketKeys others = derive_keys(GetParam(), TrafficSecret(octets(32, 6)));
    PacketCipher other(GetParam(), Direction::open, others.key_span());
    EXPECT_FALSE(other.open(back.data(), cipher, nonce_, header_));
}

TEST_P(EverySuite, counts_only_new_packets) {
    std::uint64_t opened = 0;
    open_.count_in(opened, keys_.iv);
    const Octets plain = octets(40, 1);
    Octets back(40);
    const auto arrives = [&](std::uint64_t number) {
        const Octets nonce = nonce_of(keys_, number);
        return open_.open(back.data(), sealed(seal_, plain, nonce, header_), nonce, header_);
    };
    EXPECT_TRUE(arrives(0));
    EXPECT_TRUE(arrives(3));
    EXPECT_EQ(opened, 2U);
    EXPECT_TRUE(arrives(3));
    EXPECT_TRUE(arrives(1));
    EXPECT_EQ(opened, 2U) << "replayed or late";
    EXPECT_TRUE(arrives(std::uint64_t{1} << 61U));
    EXPECT_EQ(opened, 3U);
    EXPECT_FALSE(open_.open(back.data(), octets(56, 9), nonce_, header_));
    EXPECT_EQ(opened, 3U) << "forged";
}

TEST(PacketCipher, without_protection_nothing_is_hidden) {
    const Octets key = octets(32, 1);
    PacketCipher cipher(CipherSuite::checksum, Direction::seal, key);
    const Octets plain = octets(100, 7);
    const Octets out = sealed(cipher, plain, octets(12, 1), octets(9, 2));
    EXPECT_TRUE(std::equal(plain.begin(), plain.end(), out.begin()));
    HeaderMask mask(CipherSuite::checksum, key);
    std::array<std::uint8_t, kMaskBytes> bits{1, 2, 3, 4, 5};
    ASSERT_TRUE(mask.make(bits, std::span(out).first<kSampleBytes>()));
    EXPECT_EQ(bits, (std::array<std::uint8_t, kMaskBytes>{}));
}

TEST(PacketCipher, keys_are_replaced_before_their_limits) {
    EXPECT_LE(packet_limit(CipherSuite::aes_128_gcm), std::uint64_t{1} << 21U);
    EXPECT_LE(packet_limit(CipherSuite::aes_256_gcm), std::uint64_t{1} << 21U);
    EXPECT_LE(packet_limit(CipherSuite::chacha20_poly1305), std::uint64_t{1} << 62U);
    EXPECT_LE(forgery_limit(CipherSuite::aes_128_gcm), std::uint64_t{1} << 52U);
    EXPECT_LE(forgery_limit(CipherSuite::chacha20_poly1305), std::uint64_t{1} << 36U);
}

}  // namespace
}  // namespace nexar::quic
