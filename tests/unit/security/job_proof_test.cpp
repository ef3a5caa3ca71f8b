#include "security/job_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nexar::security {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kText = "000102030405060708090a0b0c0d0e0f";

JobSecret secret(std::string_view text = kText) {
    return JobSecret::from_text(text).value();
}

std::vector<std::byte> exporter(unsigned first = 0x80) {
    std::vector<std::byte> bytes(32);
    for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(first + i);
    return bytes;
}

PublicKey ca(unsigned first = 1) {
    std::vector<std::byte> raw(32);
    for (unsigned i = 0; i < 32; ++i) raw[i] = static_cast<std::byte>(first + 7 * i);
    return PublicKey::from_raw(raw).value();
}

JobSecret::Proof from_hex(std::string_view digits) {
    JobSecret::Proof made{};
    EXPECT_TRUE(nexar::detail::from_hex_digits(digits, made));
    return made;
}

// openssl dgst -sha256 -hmac 000102030405060708090a0b0c0d0e0f over: the label, a byte 0, the bytes
// 80 to 9f, the SubjectPublicKeyInfo 302a300506032b6570032100 and 01 08 0f ... da.
TEST(JobProof, equals_the_hmac_that_openssl_computes) {
    EXPECT_EQ(secret().proof(Role::client, exporter(), ca()),
              from_hex("f2a6fe4e1e3166d6b4c9339afebc1b360d4c8cfb452bd647f0f227bbab93a774"));
    EXPECT_EQ(secret().proof(Role::server, exporter(), ca()),
              from_hex("e34200f61a8d907fa8f84e4a9694c6262b4ac341cb3b276abec99411cd6e0822"));
}

TEST(JobProof, is_valid_only_for_its_role_connection_ca_and_secret) {
    const auto proof = secret().proof(Role::client, exporter(), ca());
    EXPECT_TRUE(secret().proves(proof, Role::client, exporter(), ca()));
    EXPECT_FALSE(secret().proves(proof, Role::server, exporter(), ca())) << "reflected";
    EXPECT_FALSE(secret().proves(proof, Role::client, exporter(0x81), ca()))
        << "on another connection";
    EXPECT_FALSE(secret().proves(proof, Role::client, exporter(), ca(2))) << "for another CA";
    EXPECT_FALSE(
        secret("100102030405060708090a0b0c0d0e0f").proves(proof, Role::client, exporter(), ca()))
        << "of another job";
    EXPECT_FALSE(secret().proves({}, Role::client, exporter(), ca()));
}

TEST(JobProof, is_invalid_if_any_bit_changes) {
    const auto proof = secret().proof(Role::server, exporter(), ca());
    for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
        auto other = proof;
        other[bit / 8] ^= std::byte{1} << (bit % 8);
        ASSERT_FALSE(secret().proves(other, Role::server, exporter(), ca())) << bit;
    }
}

TEST(JobProof, depends_on_every_byte_of_the_exporter) {
    const auto proof = secret().proof(Role::client, exporter(), ca());
    for (std::size_t i = 0; i < 32; ++i) {
        auto other = exporter();
        other[i] ^= std::byte{0x80};
        ASSERT_FALSE(secret().proves(proof, Role::client, other, ca())) << i;
    }
}

TEST(JobSecret, ignores_white_space_around_the_text) {
    const auto proof = secret().proof(Role::client, exporter(), ca());
    for (const std::string& text : {std::string(kText) + "\n", std::string(kText) + "\r\n",
                                    "  \t" + std::string(kText) + " \n\n"}) {
        EXPECT_TRUE(secret(text).proves(proof, Role::client, exporter(), ca()));
    }
    // White space inside the text and the case of its letters matter.
    for (const char* text :
         {"00010203 0405060708090a0b0c0d0e0f", "000102030405060708090A0B0C0D0E0F"}) {
        EXPECT_FALSE(secret(text).proves(proof, Role::client, exporter(), ca()));
    }
}

TEST(JobSecret, can_be_any_text_that_is_hard_to_guess) {
    EXPECT_TRUE(JobSecret::from_text("correct horse battery staple, and 4 more"));
    EXPECT_TRUE(JobSecret::from_text(kText));
    std::string longest;
    while (longest.size() < JobSecret::kMaxCharacters) longest += kText;
    EXPECT_TRUE(JobSecret::from_text(longest));
    EXPECT_TRUE(JobSecret::from_text("\n" + longest + "\n"));
    EXPECT_FALSE(JobSecret::from_text(longest + "0"));
}

TEST(JobSecret, refuses_a_guessable_text_without_quoting_it_and_says_how_to_create_one) {
    const auto expect_refused = [](const std::string& text, const std::string& why) {
        const auto made = JobSecret::from_text(text);
        ASSERT_FALSE(made) << text;
        EXPECT_EQ(made.error().code(), Errc::bad_config);
        const std::string said = made.error().what();
        EXPECT_THAT(said, HasSubstr(why));
        EXPECT_THAT(said, HasSubstr("`openssl rand -hex 32`"));
        EXPECT_THAT(said, HasSubstr("NEXAR_JOB_SECRET"));
        EXPECT_THAT(said, HasSubstr("NEXAR_JOB_SECRET_FILE"));
        for (std::size_t at = 0; at + 4 <= text.size(); ++at) {
            if (text.substr(at, 4).find_first_not_of(" \n") == std::string::npos) continue;
            ASSERT_THAT(said, Not(HasSubstr(text.substr(at, 4))));
        }
    };
    expect_refused("", "it has 0 characters; allowed: at least 32");
    expect_refused(" \n\t ", "it has 0 characters");
    expect_refused(std::string(kText.substr(1)), "it has 31 characters");
    expect_refused(std::string(kText.substr(1)) + "    \n", "it has 31 characters");
    expect_refused("hunter2", "it has 7 characters");
    expect_refused(std::string(64, 'x'), "it repeats a few characters");
    expect_refused("qwzkjqwzkjqwzkjqwzkjqwzkjqwzkjqwzkj", "it repeats a few characters");
    expect_refused(std::string(4097, 'x'), "more than 4096 characters");
}

}  // namespace
}  // namespace nexar::security
