// Handshakes between a joiner, which has no certificate, and a seed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "security/tls_session.hpp"
#include "support/test_cluster.hpp"
#include "tls_pair.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

using nexar::testing::MessagePair;
using nexar::testing::SharedCredentials;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;

/// Credentials of a seed, or of an ordinary member that claims to be one.
SharedCredentials seed_of(const TestCluster& cluster, bool marked = true) {
    auto key = KeyPair::generate().value();
    const auto own =
        cluster.ca()
            .issue(
                {.public_key = key.public_key(), .identity = cluster.identity(9), .seed = marked},
                kNow)
            .value();
    return Credentials::create_seed(std::move(key), own, cluster.ca().certificate()).value();
}

class TlsJoinTest : public ::testing::Test {
protected:
    TlsOptions joiner(std::optional<PublicKeyHash> ca) const {
        return {.role = Role::client, .join_alpn = "nexar-join/1", .ca = ca, .wall_clock = [] {
                    return kNow;
                }};
    }
    TlsOptions joiner() const { return joiner(cluster_.ca().key().public_key_hash()); }

    TlsOptions server(SharedCredentials credentials) const {
        return {.role = Role::server,
                .credentials = std::move(credentials),
                .alpn = "nexar/1",
                .join_alpn = "nexar-join/1",
                .expected = {.cluster = cluster_.id()},
                .wall_clock = [] { return kNow; }};
    }

    TestCluster cluster_{kNow};
};

TEST_F(TlsJoinTest, joiner_authenticates_the_seed_and_the_seed_recognises_a_joiner) {
    MessagePair pair(joiner(), server(seed_of(cluster_)));
    pair.run();
    ASSERT_TRUE(pair.client_ending().completed());
    ASSERT_TRUE(pair.server_ending().completed());
    EXPECT_EQ(pair.client().peer(), cluster_.identity(9));
    EXPECT_EQ(pair.client().seen_ca(), cluster_.ca().certificate());
    EXPECT_FALSE(pair.client().with_joiner());
    EXPECT_TRUE(pair.server().with_joiner());
    EXPECT_FALSE(pair.server().peer().has_value());
    std::array<std::byte, 32> ours{};
    std::array<std::byte, 32> theirs{};
    ASSERT_TRUE(pair.client().export_key("a label", ours).has_value());
    ASSERT_TRUE(pair.server().export_key("a label", theirs).has_value());
    EXPECT_EQ(ours, theirs);
}

TEST_F(TlsJoinTest, joiner_refuses_a_ca_with_another_hash_during_the_handshake) {
    const TestCluster other{kNow};
    MessagePair pair(joiner(), server(seed_of(other)));
    pair.run();
    EXPECT_FALSE(pair.client_ending().completed());
    EXPECT_FALSE(pair.server_ending().completed());
    ASSERT_TRUE(pair.client().refusal().has_value());
    EXPECT_EQ(pair.client().refusal()->alert, Alert::unknown_ca);
    EXPECT_THAT(pair.client().refusal()->error.what(), HasSubstr("the join string names"));
}

TEST_F(TlsJoinTest, joiner_refuses_a_member_that_claims_to_be_a_seed) {
    MessagePair pair(joiner(), server(seed_of(cluster_, false)));
    pair.run();
    EXPECT_FALSE(pair.client_ending().completed());
    ASSERT_TRUE(pair.client().refusal().has_value());
    EXPECT_THAT(pair.client().refusal()->error.what(), HasSubstr("not a seed"));
}

TEST_F(TlsJoinTest, joiner_refuses_a_seed_that_does_not_present_its_ca) {
    MessagePair pair(joiner(), server(cluster_.node(2)));
    pair.run();
    EXPECT_FALSE(pair.client_ending().completed());
    EXPECT_TRUE(pair.client().refusal().has_value());
}

TEST_F(TlsJoinTest, joiner_refuses_the_right_ca_with_a_leaf_that_another_ca_signed) {
    const TestCluster other{kNow};
    auto key = KeyPair::generate().value();
    const auto own =
        other.ca()
            .issue({.public_key = key.public_key(), .identity = other.identity(9), .seed = true},
                   kNow)
            .value();
    // The CA that the joiner expects, with a leaf that another CA signed.
    const std::vector<Credentials::Der> chain{own.der(), cluster_.ca().certificate().der()};
    const auto forged =
        Credentials::create_unchecked(std::move(key), chain, other.ca().certificate()).value();
    MessagePair pair(joiner(), server(forged));
    pair.run();
    EXPECT_FALSE(pair.client_ending().completed());
    EXPECT_TRUE(pair.client().refusal().has_value());
}

TEST_F(TlsJoinTest, joiner_without_a_hash_accepts_any_seed_and_learns_its_ca) {
    MessagePair pair(joiner(std::nullopt), server(seed_of(cluster_)));
    pair.run();
    ASSERT_TRUE(pair.client_ending().completed());
    EXPECT_EQ(pair.client().seen_ca(), cluster_.ca().certificate());
}

TEST_F(TlsJoinTest, node_without_the_joiners_protocol_admits_no_joiners) {
    TlsOptions node = server(cluster_.node(2));
    node.join_alpn.clear();
    MessagePair pair(joiner(), node);
    pair.run();
    EXPECT_FALSE(pair.client_ending().completed());
    EXPECT_FALSE(pair.server_ending().completed());
    EXPECT_FALSE(pair.server().with_joiner());
}

TEST_F(TlsJoinTest, seed_still_requires_a_certificate_from_a_node) {
    TlsOptions node{.role = Role::client,
                    .credentials = cluster_.node(3),
                    .alpn = "nexar/1",
                    .expected = {.cluster = cluster_.id(), .node = {}, .seed = true},
                    .wall_clock = [] { return kNow; }};
    MessagePair pair(node, server(seed_of(cluster_)));
    pair.run();
    ASSERT_TRUE(pair.server_ending().completed());
    EXPECT_EQ(pair.server().peer(), cluster_.identity(3));
    EXPECT_FALSE(pair.server().with_joiner());

    node.credentials = cluster_.flawed(nexar::testing::Flaw::no_certificate);
    MessagePair bare(node, server(seed_of(cluster_)));
    bare.run();
    EXPECT_FALSE(bare.server_ending().completed());
}

TEST_F(TlsJoinTest, node_that_expects_a_seed_refuses_a_member) {
    const TlsOptions node{.role = Role::client,
                          .credentials = cluster_.node(3),
                          .alpn = "nexar/1",
                          .expected = {.cluster = cluster_.id(), .node = {}, .seed = true},
                          .wall_clock = [] { return kNow; }};
    MessagePair pair(node, server(cluster_.node(4)));
    pair.run();
    ASSERT_TRUE(pair.client().refusal().has_value());
    EXPECT_THAT(pair.client().refusal()->error.what(), HasSubstr("not a seed"));
}

}  // namespace
}  // namespace nexar::security
