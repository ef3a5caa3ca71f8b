#include "security/certificate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "security/credentials.hpp"
#include "support/test_cluster.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

using namespace std::chrono_literals;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;

Identity some_identity() {
    return {ClusterId::from_hex("00112233445566778899aabbccddeeff").value(),
            NodeId::from_hex("ffeeddccbbaa99887766554433221100").value(),
            Incarnation(0x0123456789abcdef)};
}

constexpr std::string_view kUri =
    "nexar://00112233445566778899aabbccddeeff/ffeeddccbbaa99887766554433221100/0123456789abcdef";

TEST(IdentityUri, has_exactly_one_form) {
    EXPECT_EQ(identity_uri(some_identity()), kUri);
    EXPECT_EQ(parse_identity_uri(kUri).value(), some_identity());
    EXPECT_EQ(identity_uri(Identity{}).size(), kUri.size());
}

TEST(IdentityUri, refuses_every_other_text) {
    const std::string good(kUri);
    std::vector<std::string> bad{"",
                                 "nexar://",
                                 good + "0",
                                 good.substr(0, good.size() - 1),
                                 "NEXAR" + good.substr(5),
                                 " " + good.substr(1),
                                 good.substr(0, good.size() - 1) + std::string(1, '\0')};
    // Every character matters: 'F' is not valid anywhere.
    for (std::size_t at = 0; at < good.size(); ++at) {
        bad.push_back(good);
        bad.back()[at] = 'F';
    }
    for (const std::string& text : bad) {
        const auto identity = parse_identity_uri(text);
        ASSERT_FALSE(identity) << text;
        EXPECT_EQ(identity.error().code(), Errc::malformed);
    }
}

class CertificateTest : public ::testing::Test {
protected:
    CertificateTest()
        : certificate_(
              cluster_.ca()
                  .issue({.public_key = key_.public_key(), .identity = cluster_.identity(3)}, kNow)
                  .value()) {}

    TestCluster cluster_{kNow};
    KeyPair key_ = KeyPair::generate().value();
    Certificate certificate_;
};

TEST_F(CertificateTest, contains_identity_key_and_validity) {
    EXPECT_EQ(certificate_.identity().value(), cluster_.identity(3));
    EXPECT_EQ(certificate_.public_key().value(), key_.public_key());
    EXPECT_EQ(certificate_.validity().not_before, kNow - 10min);
    EXPECT_EQ(certificate_.validity().not_after, kNow + 24h);
}

TEST_F(CertificateTest, survives_a_round_trip_through_pem_and_der) {
    EXPECT_EQ(Certificate::from_pem(certificate_.to_pem()).value(), certificate_);
    EXPECT_EQ(Certificate::from_der(certificate_.der()).value(), certificate_);
    EXPECT_EQ(Certificate::from_pem("remarks\n" + certificate_.to_pem()).value(), certificate_);
}

TEST_F(CertificateTest, different_certificates_have_different_fingerprints) {
    EXPECT_EQ(certificate_.fingerprint(),
              Certificate::from_der(certificate_.der()).value().fingerprint());
    EXPECT_NE(certificate_.fingerprint(), cluster_.ca().certificate().fingerprint());
}

TEST_F(CertificateTest, refuses_bytes_that_are_not_exactly_one_certificate) {
    auto der = certificate_.der();
    for (std::size_t size = 0; size < der.size(); ++size) {
        ASSERT_FALSE(Certificate::from_der(std::span(der).first(size))) << size;
    }
    der.push_back(std::byte{0});
    EXPECT_EQ(Certificate::from_der(der).error().code(), Errc::malformed);
    EXPECT_FALSE(Certificate::from_pem("no certificate here"));
    EXPECT_FALSE(Certificate::from_pem(""));
}

TEST_F(CertificateTest, refuses_certificates_that_exceed_the_limits) {
    CertificateSpec spec = cluster_.node_spec(1, key_);
    spec.uris.push_back("https://" + std::string(Certificate::kMaxBytes, 'x'));
    const Signer signer{.key = cluster_.ca().key(), .certificate = &cluster_.ca().certificate()};
    const auto large = Certificate::from_der(sign_certificate(spec, signer).value());
    EXPECT_EQ(large.error().code(), Errc::limit_exceeded);

    spec.uris.assign(Certificate::kMaxNames + 1, "https://host");
    const auto names = Certificate::from_der(sign_certificate(spec, signer).value());
    EXPECT_THAT(names.error().cause(), HasSubstr("more than 8 subject alternative names"));
}

TEST_F(CertificateTest, counts_nexar_names_of_any_length) {
    CertificateSpec spec = cluster_.node_spec(1, key_);
    spec.uris.push_back("nexar://" + std::string(500, 'a'));
    const Signer signer{.key = cluster_.ca().key(), .certificate = &cluster_.ca().certificate()};
    const auto two = Certificate::from_der(sign_certificate(spec, signer).value()).value();
    EXPECT_THAT(two.identity().error().cause(), HasSubstr("has 2 subject alternative names"));
}

TEST_F(CertificateTest, all_certificates_of_a_profile_have_the_same_size) {
    for (std::uint64_t i = 0; i < 40; ++i) {
        const KeyPair key = KeyPair::generate().value();
        Identity identity = cluster_.identity(i);
        identity.incarnation = Incarnation(i * 0x123456789);
        const auto other =
            cluster_.ca().issue({.public_key = key.public_key(), .identity = identity}, kNow);
        EXPECT_EQ(other.value().der().size(), certificate_.der().size());
    }
}

}  // namespace
}  // namespace nexar::security
