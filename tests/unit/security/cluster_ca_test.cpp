#include "security/cluster_ca.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "security/credentials.hpp"
#include "security/random_id.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ClusterCaTest : public ::testing::Test {
protected:
    CertificateRequest request() const {
        return {.public_key = key_.public_key(),
                .identity = {ca_.cluster(), NodeId(), Incarnation(1)}};
    }

    ClusterCa ca_ = ClusterCa::create(new_cluster_id().value(), kNow).value();
    KeyPair key_ = KeyPair::generate().value();
};

TEST_F(ClusterCaTest, its_certificate_can_only_sign_nodes) {
    const auto native = ca_.certificate().native().value();
    unsigned critical = 0;
    unsigned is_ca = 0;
    int depth = -1;
    ASSERT_EQ(gnutls_x509_crt_get_basic_constraints(native.get(), &critical, &is_ca, &depth), 1);
    EXPECT_EQ(critical, 1U);
    EXPECT_EQ(depth, 0);
    unsigned usage = 0;
    ASSERT_EQ(gnutls_x509_crt_get_key_usage(native.get(), &usage, &critical), 0);
    EXPECT_EQ(usage, static_cast<unsigned>(GNUTLS_KEY_KEY_CERT_SIGN));
    EXPECT_EQ(critical, 1U);
    EXPECT_FALSE(ca_.certificate().identity()) << "a CA is not a node";
    EXPECT_EQ(ca_.certificate().public_key().value(), ca_.key().public_key());
}

TEST_F(ClusterCaTest, issues_certificates_that_work_as_credentials) {
    const auto certificate = ca_.issue(request(), kNow).value();
    const auto credentials =
        Credentials::create(std::move(key_), certificate, ca_.certificate()).value();
    EXPECT_EQ(credentials->identity().cluster, ca_.cluster());
    EXPECT_EQ(credentials->validity(), certificate.validity());
}

TEST_F(ClusterCaTest, can_be_saved_and_restored) {
    auto key = KeyPair::from_pem(ca_.key().to_pem().value()).value();
    const auto restored = ClusterCa::restore(
        std::move(key), Certificate::from_pem(ca_.certificate().to_pem()).value());
    ASSERT_TRUE(restored);
    EXPECT_EQ(restored->cluster(), ca_.cluster());
    EXPECT_TRUE(Credentials::create(std::move(key_), restored->issue(request(), kNow).value(),
                                    ca_.certificate()));
}

TEST_F(ClusterCaTest, is_not_restored_from_parts_that_do_not_match) {
    const auto other_key = ClusterCa::restore(KeyPair::generate().value(), ca_.certificate());
    EXPECT_EQ(other_key.error().code(), Errc::bad_config);
    EXPECT_THAT(other_key.error().cause(), HasSubstr("it is for another key"));
    const auto of_node = ca_.issue(request(), kNow).value();
    const auto node = ClusterCa::restore(std::move(key_), of_node);
    EXPECT_THAT(node.error().cause(), HasSubstr("it is not allowed to sign other certificates"));
}

TEST_F(ClusterCaTest, issues_only_for_its_own_cluster) {
    CertificateRequest foreign = request();
    foreign.identity.cluster = new_cluster_id().value();
    const auto refused = ca_.issue(foreign, kNow);
    EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
    EXPECT_THAT(refused.error().cause(), HasSubstr(ca_.cluster().to_hex()));
}

TEST_F(ClusterCaTest, issues_only_for_a_limited_lifetime) {
    for (const std::chrono::seconds bad : {0s, -5s, std::chrono::seconds(90 * 24h) + 1s}) {
        CertificateRequest asked = request();
        asked.lifetime = bad;
        EXPECT_FALSE(ca_.issue(asked, kNow)) << bad.count();
    }
    CertificateRequest longest = request();
    longest.lifetime = 90 * 24h;
    EXPECT_TRUE(ca_.issue(longest, kNow));
}

TEST_F(ClusterCaTest, issues_nothing_that_outlives_the_ca) {
    EXPECT_FALSE(ca_.issue(request(), kNow + ClusterCa::kLifetime));
    EXPECT_FALSE(ca_.issue(request(), kNow - 11min))
        << "the clock is before the creation of the CA";
    // A clock that went back a little does not matter.
    const auto early = ca_.issue(request(), kNow - 5min).value();
    EXPECT_EQ(early.validity().not_before, ca_.certificate().validity().not_before);
}

}  // namespace
}  // namespace nexar::security
