#include "security/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_cluster.hpp"

namespace nexar::security {
namespace {

using nexar::testing::Flaw;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;

class CredentialsTest : public ::testing::Test {
protected:
    Certificate issued(const KeyPair& key) const {
        return cluster_.ca()
            .issue({.public_key = key.public_key(), .identity = cluster_.identity(4)},
                   cluster_.now())
            .value();
    }

    TestCluster cluster_;
    KeyPair key_ = KeyPair::generate().value();
};

TEST_F(CredentialsTest, contain_identity_and_validity) {
    const Certificate own = issued(key_);
    const PublicKey public_key = key_.public_key();
    const auto credentials =
        Credentials::create(std::move(key_), own, cluster_.ca().certificate()).value();
    EXPECT_EQ(credentials->identity(), cluster_.identity(4));
    EXPECT_EQ(credentials->validity(), own.validity());
    EXPECT_EQ(credentials->ca(), cluster_.ca().certificate());
    EXPECT_EQ(credentials->key().public_key(), public_key);
}

TEST_F(CredentialsTest, require_the_key_of_the_certificate) {
    const auto other =
        Credentials::create(KeyPair::generate().value(), issued(key_), cluster_.ca().certificate());
    EXPECT_EQ(other.error().code(), Errc::bad_config);
    EXPECT_THAT(other.error().cause(), HasSubstr("for another key"));
}

TEST_F(CredentialsTest, require_the_ca_of_the_certificate) {
    const Certificate own = issued(key_);
    // The same name, another key.
    const auto impostor = ClusterCa::create(cluster_.id(), cluster_.now()).value();
    const auto other = Credentials::create(std::move(key_), own, impostor.certificate());
    EXPECT_EQ(other.error().code(), Errc::bad_config);
    EXPECT_THAT(other.error().cause(), HasSubstr("not signed by the CA"));
}

TEST_F(CredentialsTest, require_a_certificate_that_names_a_node) {
    auto ca_key = KeyPair::from_pem(cluster_.ca().key().to_pem().value()).value();
    const auto& ca = cluster_.ca().certificate();
    const auto nobody = Credentials::create(std::move(ca_key), ca, ca);
    EXPECT_EQ(nobody.error().code(), Errc::bad_config);
}

TEST_F(CredentialsTest, have_no_identity_if_unchecked_and_without_a_name) {
    EXPECT_EQ(cluster_.flawed(Flaw::no_certificate)->identity(), Identity{});
    EXPECT_EQ(cluster_.flawed(Flaw::no_name)->identity(), Identity{});
}

}  // namespace
}  // namespace nexar::security
