#include "security/peer_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/test_cluster.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

using namespace std::chrono_literals;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;
using ::testing::Not;

class PeerCheckTest : public ::testing::Test {
protected:
    using Der = std::vector<std::byte>;

    Der sign(const CertificateSpec& spec) const {
        return sign_certificate(
                   spec, {.key = cluster_.ca().key(), .certificate = &cluster_.ca().certificate()})
            .value();
    }

    Checked<Identity> check(const Der& own, WallTime now, Role peer_role = Role::client) const {
        ShownCertificates shown{.count = 1};
        shown.der[0] = own;
        return check_peer(shown, {.ours = *ours_,
                                  .expected = {.cluster = cluster_.id()},
                                  .peer_role = peer_role,
                                  .now = now});
    }

    static const Refusal& refused(const Checked<Identity>& verdict) {
        return std::get<Refusal>(verdict);
    }

    TestCluster cluster_{kNow};
    std::shared_ptr<const Credentials> ours_ = cluster_.node(1);
    KeyPair key_ = KeyPair::generate().value();
    CertificateSpec spec_ = cluster_.node_spec(2, key_);
};

TEST_F(PeerCheckTest, accepts_a_certificate_from_its_first_to_its_last_second) {
    const Der der = sign(spec_);
    EXPECT_EQ(std::get<Identity>(check(der, spec_.validity.not_before)), cluster_.identity(2));
    EXPECT_EQ(std::get<Identity>(check(der, spec_.validity.not_after)), cluster_.identity(2));
    EXPECT_EQ(refused(check(der, spec_.validity.not_before - 1s)).alert,
              Alert::certificate_expired);
    EXPECT_EQ(refused(check(der, spec_.validity.not_after + 1s)).alert, Alert::certificate_expired);
}

TEST_F(PeerCheckTest, names_the_times_and_the_remedy_for_an_expired_certificate) {
    spec_.validity = {kNow - 96h, kNow - 48h};
    const auto verdict = check(sign(spec_), kNow);
    const std::string& cause = refused(verdict).error.cause();
    EXPECT_THAT(cause, HasSubstr("is expired"));
    EXPECT_THAT(cause, HasSubstr("valid from 2026-04-30T03:02:01Z to 2026-05-02T03:02:01Z"));
    EXPECT_THAT(cause, HasSubstr("clock says 2026-05-04T03:02:01Z, 2 days too late"));
    EXPECT_THAT(cause, HasSubstr("must renew it"));
    EXPECT_THAT(cause, Not(HasSubstr("check the clocks")));
    EXPECT_THAT(refused(verdict).reason, HasSubstr("valid until 2026-05-02T03:02:01Z"));
}

TEST_F(PeerCheckTest, suspects_the_clocks_where_they_may_be_wrong) {
    const Der der = sign(spec_);
    // Our own certificate is not valid either: the clock of this host is the first suspect.
    EXPECT_THAT(refused(check(der, kNow + 30 * 24h)).error.cause(),
                HasSubstr("check the clocks, first that of this host"));
    EXPECT_THAT(refused(check(der, kNow - 30 * 24h)).error.cause(),
                HasSubstr("check the clocks, first that of this host"));
    spec_.validity.not_before = kNow + 20min;
    EXPECT_THAT(refused(check(sign(spec_), kNow)).error.cause(),
                HasSubstr("20 min too early; check the clocks of both hosts"));
}

TEST_F(PeerCheckTest, requires_the_purpose_that_matches_the_role_of_the_peer) {
    spec_.purposes = {GNUTLS_KP_TLS_WWW_SERVER};
    const Der server_only = sign(spec_);
    EXPECT_TRUE(std::holds_alternative<Identity>(check(server_only, kNow, Role::server)));
    EXPECT_THAT(refused(check(server_only, kNow, Role::client)).error.cause(),
                HasSubstr("not for a TLS client (extended key usage clientAuth)"));
    spec_.purposes = {GNUTLS_KP_ANY};
    EXPECT_TRUE(std::holds_alternative<Refusal>(check(sign(spec_), kNow)))
        << "anyExtendedKeyUsage is not accepted";
}

TEST_F(PeerCheckTest, allows_other_names_in_addition_to_that_of_the_node) {
    spec_.uris.insert(spec_.uris.begin(), "https://host.example");
    EXPECT_EQ(std::get<Identity>(check(sign(spec_), kNow)), cluster_.identity(2));
}

TEST_F(PeerCheckTest, a_subject_cannot_forge_a_log_line) {
    spec_.subject = "evil\nnexar: all is well";
    spec_.is_ca = true;
    const auto verdict = check(sign(spec_), kNow);
    EXPECT_THAT(refused(verdict).error.cause(), Not(HasSubstr("\n")));
    EXPECT_THAT(refused(verdict).error.cause(), HasSubstr("evil"));
}

TEST_F(PeerCheckTest, allows_the_certificate_of_the_ca_after_that_of_the_node) {
    const Der own = sign(spec_);
    ShownCertificates shown{.count = 2};
    shown.der[0] = own;
    shown.der[1] = cluster_.ca().certificate().der();
    const PeerRules rules{.ours = *ours_,
                          .expected = {.cluster = cluster_.id()},
                          .peer_role = Role::client,
                          .now = kNow};
    EXPECT_TRUE(std::holds_alternative<Identity>(check_peer(shown, rules)));
    shown.der[1] = own;
    EXPECT_EQ(refused(check_peer(shown, rules)).alert, Alert::unknown_ca);
}

TEST_F(PeerCheckTest, refuses_another_kind_of_key_before_verifying_anything) {
    const auto native = [] {
        auto made = make_handle<PrivateKeyHandle, gnutls_x509_privkey_init>();
        gnutls_x509_privkey_generate(made.get(), GNUTLS_PK_ECDSA,
                                     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
        return made;
    }();
    auto certificate = make_handle<CertificateHandle, gnutls_x509_crt_init>();
    const unsigned char serial = 1;
    gnutls_x509_crt_set_version(certificate.get(), 3);
    gnutls_x509_crt_set_serial(certificate.get(), &serial, 1);
    gnutls_x509_crt_set_activation_time(certificate.get(), 0);
    gnutls_x509_crt_set_expiration_time(certificate.get(), 4'000'000'000);
    gnutls_x509_crt_set_key(certificate.get(), native.get());
    ASSERT_EQ(gnutls_x509_crt_sign2(certificate.get(), certificate.get(), native.get(),
                                    GNUTLS_DIG_SHA256, 0),
              0);
    OwnedDatum der;
    ASSERT_EQ(gnutls_x509_crt_export2(certificate.get(), GNUTLS_X509_FMT_DER, der.out()), 0);
    const auto verdict = check(Der(der.bytes().begin(), der.bytes().end()), kNow);
    EXPECT_EQ(refused(verdict).alert, Alert::unsupported_certificate);
    EXPECT_THAT(refused(verdict).error.cause(), HasSubstr("allowed: Ed25519 for both"));
}

}  // namespace
}  // namespace nexar::security
