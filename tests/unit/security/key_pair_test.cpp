#include "security/key_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "security/random_id.hpp"

namespace nexar::security {
namespace {

using ::testing::HasSubstr;

Secret secret_of(std::string_view text) {
    return Secret(std::as_bytes(std::span(text)));
}

/// The private key of RFC 8410 section 10.3; its public half is in section 10.1.
constexpr std::string_view kKnownPrivate =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr std::string_view kKnownPublicHex =
    "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

Secret ecdsa_key() {
    const auto key = make_handle<PrivateKeyHandle, gnutls_x509_privkey_init>();
    EXPECT_EQ(gnutls_x509_privkey_generate(key.get(), GNUTLS_PK_ECDSA,
                                           GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
              0);
    OwnedDatum pem;
    EXPECT_EQ(gnutls_x509_privkey_export2_pkcs8(key.get(), GNUTLS_X509_FMT_PEM, nullptr,
                                                GNUTLS_PKCS_PLAIN, pem.out()),
              0);
    return Secret(pem.bytes());
}

TEST(KeyPair, reads_the_key_of_rfc_8410) {
    const KeyPair key = KeyPair::from_pem(secret_of(kKnownPrivate)).value();
    EXPECT_EQ(detail::hex_digits(key.public_key().spki()), kKnownPublicHex);
}

TEST(KeyPair, survives_a_round_trip_through_pem) {
    const KeyPair key = KeyPair::generate().value();
    const Secret pem = key.to_pem().value();
    const KeyPair again = KeyPair::from_pem(pem).value();
    EXPECT_EQ(again.public_key(), key.public_key());
    EXPECT_EQ(again.public_key_hash(), key.public_key_hash());
    EXPECT_TRUE(again.to_pem().value() == pem);
}

TEST(KeyPair, differs_each_time) {
    EXPECT_NE(KeyPair::generate().value().public_key(), KeyPair::generate().value().public_key());
    EXPECT_NE(KeyPair::generate().value().public_key_hash(),
              KeyPair::generate().value().public_key_hash());
}

TEST(KeyPair, refuses_text_that_is_not_a_key_without_quoting_it) {
    const auto nothing = KeyPair::from_pem(secret_of("hush hush"));
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().code(), Errc::malformed);
    EXPECT_THAT(nothing.error().cause(), ::testing::Not(HasSubstr("hush")));
    EXPECT_FALSE(KeyPair::from_pem(Secret()));
}

TEST(KeyPair, refuses_another_kind_of_key) {
    const auto ecdsa = KeyPair::from_pem(ecdsa_key());
    ASSERT_FALSE(ecdsa);
    EXPECT_THAT(ecdsa.error().cause(), HasSubstr("not an Ed25519 key"));
}

TEST(PublicKey, has_exactly_one_form_of_44_bytes) {
    const PublicKey key = KeyPair::generate().value().public_key();
    auto spki = key.spki();
    EXPECT_EQ(PublicKey::from_spki(spki).value(), key);
    EXPECT_FALSE(PublicKey::from_spki(std::span(spki).first(43)));
    spki[8] = std::byte{0x71};  // the OID of Ed448
    EXPECT_EQ(PublicKey::from_spki(spki).error().code(), Errc::malformed);
    EXPECT_FALSE(PublicKey::from_raw(std::span(spki).first(31)));
}

TEST(NewId, differs_each_time) {
    EXPECT_NE(new_node_id().value(), new_node_id().value());
    EXPECT_NE(new_cluster_id().value(), new_cluster_id().value());
}

}  // namespace
}  // namespace nexar::security
