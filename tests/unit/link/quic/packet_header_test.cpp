#include "link/quic/packet_header.hpp"

#include <gtest/gtest.h>
#include <ngtcp2/ngtcp2.h>

#include "hex.hpp"
#include "support/quic_pair.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::DatagramNet;
using nexar::testing::pattern;
using Kind = PacketTarget::Kind;

constexpr TimePoint kNow{1000s};

std::vector<std::byte> bytes(std::string_view digits, std::size_t size = 0) {
    std::vector<std::byte> out;
    for (const std::uint8_t octet : unhex(digits)) out.push_back(std::byte{octet});
    out.resize(std::max(size, out.size()), std::byte{0x5c});
    return out;
}

TEST(PacketHeader, finds_the_id_of_a_short_header) {
    const auto target =
        decode_target(bytes("41"
                            "0102030405060708"
                            "99",
                            40));
    ASSERT_TRUE(target);
    EXPECT_EQ(target->kind, Kind::short_header);
    EXPECT_EQ(target->to, AnyCid(unhex("0102030405060708")));
}

TEST(PacketHeader, finds_the_ids_of_a_long_header) {
    const auto target =
        decode_target(bytes("c000000001"
                            "03aabbcc"
                            "02ddee"
                            "00",
                            1200));
    ASSERT_TRUE(target);
    EXPECT_EQ(target->kind, Kind::long_header);
    EXPECT_EQ(target->version, 1U);
    EXPECT_EQ(target->to, AnyCid(unhex("aabbcc")));
    EXPECT_EQ(target->from, AnyCid(unhex("ddee")));
}

TEST(PacketHeader, recognises_another_version_by_its_long_header) {
    const auto target =
        decode_target(bytes("c0abababab"
                            "03aabbcc"
                            "02ddee",
                            1200));
    ASSERT_TRUE(target);
    EXPECT_EQ(target->kind, Kind::other_version);
    EXPECT_EQ(target->from, AnyCid(unhex("ddee")));
}

TEST(PacketHeader, decodes_junk_of_any_size_without_harm) {
    std::size_t packets = 0;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
        auto junk = pattern(seed, seed % 70);
        if (seed % 3 == 0 && junk.size() > 5) {
            junk[0] = std::byte{0xc3};
            junk[1] = junk[2] = junk[3] = std::byte{0};
            junk[4] = std::byte{1};
        }
        if (decode_target(junk)) ++packets;
        EXPECT_FALSE(decode_client_hello(junk)) << "a first packet is never this short";
    }
    EXPECT_GT(packets, 1000U);
    EXPECT_FALSE(decode_target({}));
    EXPECT_FALSE(decode_target(bytes("41010203"))) << "shorter than its id";
    EXPECT_FALSE(
        decode_target(bytes("c000000001"
                            "15"
                            "00",
                            1200)))
        << "an id of 21 bytes";
}

TEST(PacketHeader, a_reset_looks_like_a_packet_and_ends_in_the_token) {
    const Secret secret(pattern(1, 32));
    LocalCid cid{.bytes = {1, 2, 3, 4, 5, 6, 7, 8}};
    const ResetToken token = make_reset_token(secret, cid);
    EXPECT_EQ(token, make_reset_token(secret, cid));
    EXPECT_NE(token, make_reset_token(Secret(pattern(2, 32)), cid));
    std::vector<std::byte> out(43);
    const auto random = unhex("00112233445566778899aabbccddeeff00112233445566778899aa");
    ASSERT_EQ(write_stateless_reset(out, token, random), 43U);
    EXPECT_EQ(out[0] & std::byte{0xc0}, std::byte{0x40});
    EXPECT_EQ(std::memcmp(out.data() + 27, token.data(), 16), 0);
    cid.bytes[7] = 9;
    EXPECT_NE(token, make_reset_token(secret, cid));
}

/// A Retry, and the client's answer to it with the token.
class RetryToken : public ::testing::Test {
protected:
    RetryToken() {
        first_.version = NGTCP2_PROTO_VER_V1;
        first_.to = AnyCid(unhex("8394c8f03e515708"));
        first_.from = AnyCid(unhex("aabbccdd"));
        std::vector<std::byte> out(1200);
        const std::size_t size = write_retry(out, first_, from_, secret_, question_);
        // RFC 9000 17.2.5: first byte, version, both ids, the token, 16 bytes of integrity tag.
        const std::size_t before = 1 + 4 + 1 + 4 + 1 + LocalCid::kBytes;
        EXPECT_GT(size, before + 16);
        EXPECT_EQ(out[0] & std::byte{0xf0}, std::byte{0xf0});
        token_.assign(out.begin() + static_cast<std::ptrdiff_t>(before),
                      out.begin() + static_cast<std::ptrdiff_t>(size - 16));
        answer_ = {.version = first_.version,
                   .to = AnyCid(from_),
                   .from = first_.from,
                   .token = token_,
                   .before_retry = {}};
    }

    Secret secret_{pattern(1, 32)};
    RetryQuestion question_{.remote = DatagramNet::address(7), .now = kNow};
    LocalCid from_{.bytes = {9, 8, 7, 6, 5, 4, 3, 2}};
    ClientHelloPacket first_;
    std::vector<std::byte> token_;
    ClientHelloPacket answer_;
};

TEST_F(RetryToken, proves_the_address_and_names_the_first_id) {
    EXPECT_TRUE(has_retry_token(answer_));
    EXPECT_FALSE(has_retry_token(first_));
    EXPECT_TRUE(verify_retry_token(answer_, secret_, question_));
    EXPECT_EQ(answer_.before_retry, first_.to);
}

TEST_F(RetryToken, is_invalid_for_another_address_or_later) {
    question_.remote = DatagramNet::address(8);
    EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << "another host";
    question_.remote = DatagramNet::address(7).with_port(1);
    EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << "another port";
    question_.remote = DatagramNet::address(7);
    question_.now = kNow + 9900ms;
    EXPECT_TRUE(verify_retry_token(answer_, secret_, question_));
    question_.now = kNow + 10'001ms;
    EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << "too old";
    question_.now = kNow;
    EXPECT_FALSE(verify_retry_token(answer_, Secret(pattern(2, 32)), question_));
    answer_.to = AnyCid(unhex("0102030405060708"));
    EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << "another connection";
}

TEST_F(RetryToken, is_invalid_when_altered_or_truncated) {
    for (std::size_t bit = 0; bit < token_.size() * 8; ++bit) {
        token_[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << bit;
        token_[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    for (std::size_t size = 1; size < token_.size(); ++size) {
        answer_.token = std::span(token_).first(size);
        EXPECT_FALSE(verify_retry_token(answer_, secret_, question_)) << size;
    }
}

TEST(PacketHeader, writers_report_missing_room) {
    std::vector<std::byte> little(5);
    PacketTarget target;
    target.to = AnyCid(unhex("0102"));
    EXPECT_EQ(write_version_negotiation(little, target, 1), 0U);
    EXPECT_EQ(write_stateless_reset(little, {}, unhex("00112233445566")), 0U);
    ClientHelloPacket hello;
    hello.version = NGTCP2_PROTO_VER_V1;
    hello.to = AnyCid(unhex("8394c8f03e515708"));
    EXPECT_EQ(write_retry(little, hello, {}, Secret(pattern(1, 32)), {}), 0U);
}

}  // namespace
}  // namespace nexar::quic
