#include "security/tls_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "security/cpu_aes.hpp"
#include "support/seed.hpp"
#include "support/test_cluster.hpp"
#include "tls_pair.hpp"
#include "unit/security/now.hpp"

namespace nexar::security {
namespace {

using namespace std::chrono_literals;
using nexar::testing::Flaw;
using nexar::testing::MessagePair;
using nexar::testing::SharedCredentials;
using nexar::testing::StreamPair;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;

/// Lets a session send more than it would accept.
void lift_limit(TlsSession& session) {
    gnutls_handshake_set_max_packet_length(session.native(), 1 << 20);
}

class TlsSessionTest : public ::testing::Test {
protected:
    TlsOptions side(Role role, SharedCredentials credentials) const {
        return {.role = role,
                .credentials = std::move(credentials),
                .alpn = "nexar/1",
                .expected = {.cluster = cluster_.id()},
                .wall_clock = [] { return kNow; }};
    }
    TlsOptions client(std::uint64_t index = 1) const {
        return side(Role::client, cluster_.node(index));
    }
    TlsOptions server(std::uint64_t index = 2) const {
        return side(Role::server, cluster_.node(index));
    }

    TestCluster cluster_{kNow};
};

TEST_F(TlsSessionTest, each_side_learns_the_identity_of_the_other) {
    StreamPair pair(client(1), server(2));
    EXPECT_FALSE(pair.client().peer().has_value());
    pair.run();
    EXPECT_EQ(pair.client_ending().code, 0) << gnutls_strerror(pair.client_ending().code);
    EXPECT_EQ(pair.server_ending().code, 0) << gnutls_strerror(pair.server_ending().code);
    EXPECT_EQ(pair.client().peer(), cluster_.identity(2));
    EXPECT_EQ(pair.server().peer(), cluster_.identity(1));
    EXPECT_FALSE(pair.client().refusal());
    EXPECT_FALSE(pair.server().refusal());
}

TEST_F(TlsSessionTest, uses_tls_1_3_with_the_fastest_cipher_of_the_cpu) {
    StreamPair pair(client(), server());
    EXPECT_FALSE(pair.client().cipher());
    pair.run();
    EXPECT_EQ(gnutls_protocol_get_version(pair.client().native()), GNUTLS_TLS1_3);
    EXPECT_EQ(gnutls_group_get(pair.client().native()), GNUTLS_GROUP_X25519);
    const Cipher wanted = cpu_has_aes() ? Cipher::aes_128_gcm : Cipher::chacha20_poly1305;
    EXPECT_EQ(pair.client().cipher(), wanted);
    EXPECT_EQ(pair.server().cipher(), wanted);
}

TEST_F(TlsSessionTest, works_when_driven_like_quic) {
    MessagePair pair(client(1), server(2));
    pair.run();
    EXPECT_TRUE(pair.client_ending().completed()) << gnutls_strerror(pair.client_ending().code);
    EXPECT_TRUE(pair.server_ending().completed()) << gnutls_strerror(pair.server_ending().code);
    EXPECT_EQ(pair.client().peer(), cluster_.identity(2));
    EXPECT_EQ(pair.server().peer(), cluster_.identity(1));
}

TEST_F(TlsSessionTest, every_handshake_has_the_same_size) {
    MessagePair first(client(1), server(2));
    first.run();
    ASSERT_TRUE(first.server_ending().completed());
    for (std::uint64_t i = 3; i < 20; ++i) {
        MessagePair other(client(i), server(i + 100));
        other.run();
        EXPECT_EQ(other.client_bytes(), first.client_bytes());
        EXPECT_EQ(other.server_bytes(), first.server_bytes());
    }
    // The first flight of the server fits, with packet overhead, into QUIC's smallest datagram.
    EXPECT_LT(first.server_bytes(), 1100U);
}

TEST_F(TlsSessionTest, sends_no_tickets) {
    StreamPair pair(client(), server());
    pair.run();
    ASSERT_TRUE(pair.client_ending().completed());
    EXPECT_EQ(gnutls_session_get_flags(pair.client().native()) & GNUTLS_SFLAGS_SESSION_TICKET, 0U);
}

TEST_F(TlsSessionTest, both_sides_export_the_same_key_and_labels_give_different_keys) {
    StreamPair pair(client(), server());
    std::array<std::byte, 32> ours{};
    EXPECT_EQ(pair.client().export_key("EXPORTER-nexar-test", ours).error().code(),
              Errc::invalid_argument);
    pair.run();
    std::array<std::byte, 32> theirs{};
    std::array<std::byte, 32> other{};
    ASSERT_TRUE(pair.client().export_key("EXPORTER-nexar-test", ours));
    ASSERT_TRUE(pair.server().export_key("EXPORTER-nexar-test", theirs));
    ASSERT_TRUE(pair.server().export_key("EXPORTER-nexar-other", other));
    EXPECT_EQ(ours, theirs);
    EXPECT_NE(ours, other);
}

TEST_F(TlsSessionTest, accepts_the_expected_node) {
    TlsOptions options = client(1);
    options.expected.node = TestCluster::node_id(2);
    StreamPair pair(options, server(2));
    pair.run();
    EXPECT_EQ(pair.client().peer(), cluster_.identity(2));
    EXPECT_EQ(pair.server().peer(), cluster_.identity(1));
}

TEST_F(TlsSessionTest, client_refuses_an_unexpected_node) {
    TlsOptions options = client(1);
    options.expected.node = TestCluster::node_id(3);
    StreamPair pair(options, server(2));
    pair.run();
    ASSERT_TRUE(pair.client().refusal());
    EXPECT_EQ(pair.client().refusal()->error.code(), Errc::unauthenticated);
    EXPECT_THAT(pair.client().refusal()->error.cause(),
                HasSubstr("is for node " + TestCluster::node_id(2).to_hex()));
    EXPECT_THAT(pair.client().refusal()->error.cause(),
                HasSubstr("expected: node " + TestCluster::node_id(3).to_hex()));
    EXPECT_FALSE(pair.client().peer());
    EXPECT_EQ(pair.server_ending().received, Alert::access_denied);
    EXPECT_FALSE(pair.server().peer());
}

TEST_F(TlsSessionTest, server_refuses_an_unexpected_node) {
    TlsOptions options = server(2);
    options.expected.node = TestCluster::node_id(3);
    StreamPair pair(client(1), options);
    pair.run();
    ASSERT_TRUE(pair.server().refusal());
    EXPECT_EQ(pair.server().refusal()->alert, Alert::access_denied);
    EXPECT_EQ(pair.client_ending().received, Alert::access_denied);
    EXPECT_FALSE(pair.server().peer());
}

TEST_F(TlsSessionTest, members_of_different_clusters_refuse_each_other) {
    const TestCluster other(kNow);
    TlsOptions stranger = side(Role::client, other.node(1));
    stranger.expected.cluster = other.id();
    StreamPair pair(stranger, server(2));
    pair.run();
    ASSERT_TRUE(pair.client().refusal());
    EXPECT_EQ(pair.client().refusal()->alert, Alert::unknown_ca);
    EXPECT_EQ(pair.server_ending().received, Alert::unknown_ca);
    EXPECT_FALSE(pair.server().peer());
}

TEST_F(TlsSessionTest, refuses_a_peer_with_another_protocol) {
    TlsOptions options = client();
    options.alpn = "h3";
    MessagePair pair(options, server());
    pair.run();
    EXPECT_FALSE(pair.server_ending().completed());
    EXPECT_EQ(pair.server_ending().sent, Alert::no_application_protocol);
    EXPECT_EQ(pair.server().failure(Alert::no_application_protocol).code(), Errc::version_mismatch);
    EXPECT_EQ(pair.client_ending().received, Alert::no_application_protocol);
}

/// An EncryptedExtensions message (RFC 8446 section 4.3.1) without its ALPN extension.
std::vector<unsigned char> without_protocol(const std::vector<unsigned char>& message) {
    constexpr std::size_t kHead = 6;  // type, length of the body, length of the extensions
    constexpr unsigned char kAlpn = 16;
    std::vector<unsigned char> kept(message.begin(), message.begin() + kHead);
    for (std::size_t at = kHead; at < message.size();) {
        const std::size_t size = 4U + message[at + 2] * 256U + message[at + 3];
        const auto first = message.begin() + static_cast<std::ptrdiff_t>(at);
        if (message[at] != 0 || message[at + 1] != kAlpn) {
            kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(size));
        }
        at += size;
    }
    EXPECT_LT(kept.size(), message.size()) << "there was no ALPN extension to remove";
    kept[3] = static_cast<unsigned char>(kept.size() - 4);
    kept[5] = static_cast<unsigned char>(kept.size() - kHead);
    return kept;
}

TEST_F(TlsSessionTest, refuses_a_peer_that_offers_no_protocol) {
    MessagePair pair(client(), server());
    pair.tamper([](gnutls_handshake_description_t type, std::vector<unsigned char>& message) {
        if (type == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS) message = without_protocol(message);
    });
    pair.run();
    ASSERT_TRUE(pair.client().refusal());
    EXPECT_EQ(pair.client().refusal()->alert, Alert::no_application_protocol);
    EXPECT_EQ(pair.client_ending().sent, Alert::no_application_protocol);
    EXPECT_EQ(pair.client().refusal()->error.code(), Errc::version_mismatch);
    EXPECT_FALSE(pair.client().peer());
}

TEST_F(TlsSessionTest, refuses_a_certificate_message_with_any_changed_byte) {
    Random random(test_seed(20260504));
    const TlsOptions ours = client();
    const TlsOptions theirs = server();
    for (int round = 0; round < 200; ++round) {
        MessagePair pair(ours, theirs);
        pair.tamper(
            [&random](gnutls_handshake_description_t type, std::vector<unsigned char>& message) {
                if (type != GNUTLS_HANDSHAKE_CERTIFICATE_PKT) return;
                const auto at = 4 + random.below(message.size() - 4);
                message[at] = static_cast<unsigned char>(message[at] ^ (1U + random.below(255)));
            });
        pair.run();
        EXPECT_FALSE(pair.client_ending().completed());
        EXPECT_FALSE(pair.client().peer());
        EXPECT_TRUE(pair.client().refusal());
    }
}

TEST_F(TlsSessionTest, server_refuses_a_client_that_presents_no_certificate) {
    StreamPair pair(side(Role::client, cluster_.flawed(Flaw::no_certificate)), server());
    pair.run();
    ASSERT_TRUE(pair.server().refusal());
    EXPECT_EQ(pair.server().refusal()->alert, Alert::certificate_required);
    EXPECT_EQ(pair.server().refusal()->reason, "you presented no certificate");
    EXPECT_EQ(pair.client_ending().received, Alert::certificate_required);
    EXPECT_TRUE(pair.client_ending().completed())
        << "a client completes before the server checks its certificate";
}

TEST_F(TlsSessionTest, refuses_certificates_that_exceed_the_limit) {
    for (const Flaw flaw : {Flaw::oversized_chain, Flaw::oversized_certificate}) {
        StreamPair pair(side(Role::client, cluster_.flawed(flaw)), server());
        lift_limit(pair.client());
        pair.run();
        ASSERT_TRUE(pair.server().refusal());
        EXPECT_THAT(pair.server().refusal()->error.cause(), HasSubstr("allowed: at most 16384"));
        EXPECT_EQ(pair.client_ending().received, Alert::bad_certificate);
        EXPECT_FALSE(pair.server().peer());

        MessagePair quic(client(), side(Role::server, cluster_.flawed(flaw)));
        lift_limit(quic.server());
        quic.run();
        ASSERT_TRUE(quic.client().refusal());
        EXPECT_EQ(quic.client().refusal()->reason, "your handshake exceeds 16384 bytes");
        EXPECT_EQ(quic.client_ending().sent, Alert::decode_error);
        EXPECT_FALSE(quic.client().peer());
    }
}

TEST_F(TlsSessionTest, admits_exactly_16_kib_of_handshake) {
    const auto session = TlsSession::create(server()).value();
    gnutls_alert_set_read_function(session->native(), [](auto...) { return 0; });
    EXPECT_TRUE(session->admit(10'000));
    EXPECT_TRUE(session->admit(6384));
    EXPECT_FALSE(session->refusal());
    EXPECT_FALSE(session->admit(1));
    ASSERT_TRUE(session->refusal());
    EXPECT_EQ(session->refusal()->alert, Alert::decode_error);
    EXPECT_FALSE(session->admit(0)) << "a refusal is final";

    const auto other = TlsSession::create(server()).value();
    gnutls_alert_set_read_function(other->native(), [](auto...) { return 0; });
    EXPECT_FALSE(other->admit(~std::size_t{0}));
}

TEST_F(TlsSessionTest, refuses_every_flawed_peer) {
    for (const Flaw flaw : nexar::testing::kAllFlaws) {
        MessagePair pair(side(Role::client, cluster_.flawed(flaw)), server());
        lift_limit(pair.client());
        pair.run();
        EXPECT_FALSE(pair.server().peer()) << name(flaw);
        EXPECT_FALSE(pair.server_ending().completed()) << name(flaw);
    }
}

TEST_F(TlsSessionTest, refuses_a_stolen_certificate_without_its_key) {
    const auto thief = cluster_.flawed(Flaw::stolen);
    MessagePair to_server(side(Role::client, thief), server());
    to_server.run();
    EXPECT_FALSE(to_server.server_ending().completed());
    EXPECT_FALSE(to_server.server().peer());
    EXPECT_EQ(to_server.server_ending().sent, Alert::decrypt_error);
    EXPECT_EQ(to_server.server().failure(Alert::decrypt_error).code(), Errc::unauthenticated);

    MessagePair to_client(client(), side(Role::server, thief));
    to_client.run();
    EXPECT_FALSE(to_client.client_ending().completed());
    EXPECT_FALSE(to_client.client().peer());
}

struct Expected {
    Flaw flaw;
    Alert alert;
    const char* cause;
};

class TlsRefusalTest : public TlsSessionTest, public ::testing::WithParamInterface<Expected> {};

TEST_P(TlsRefusalTest, happens_during_the_handshake_of_a_stream) {
    const Expected& expected = GetParam();
    StreamPair pair(side(Role::client, cluster_.flawed(expected.flaw)), server());
    pair.run();
    EXPECT_FALSE(pair.server_ending().completed());
    EXPECT_FALSE(pair.server().peer());
    EXPECT_EQ(pair.client_ending().received, expected.alert);
    ASSERT_TRUE(pair.server().refusal());
    const Refusal& refusal = *pair.server().refusal();
    EXPECT_EQ(refusal.alert, expected.alert);
    EXPECT_EQ(refusal.error.code(), Errc::unauthenticated);
    EXPECT_THAT(refusal.error.cause(), HasSubstr(expected.cause));
    EXPECT_LE(refusal.reason.size(), Refusal::kMaxReasonBytes);
    EXPECT_GT(refusal.reason.size(), 10U);
    EXPECT_FALSE(refusal.reason.ends_with("...")) << refusal.reason;
}

TEST_P(TlsRefusalTest, happens_during_the_handshake_of_quic_on_either_side) {
    const Expected& expected = GetParam();
    const auto flawed = cluster_.flawed(expected.flaw);
    MessagePair to_server(side(Role::client, flawed), server());
    to_server.run();
    EXPECT_FALSE(to_server.server_ending().completed());
    EXPECT_EQ(to_server.server_ending().sent, expected.alert);
    ASSERT_TRUE(to_server.server().refusal());

    if (expected.flaw == Flaw::no_certificate) return;  // a server cannot start without one
    MessagePair to_client(client(), side(Role::server, flawed));
    to_client.run();
    EXPECT_FALSE(to_client.client_ending().completed());
    EXPECT_EQ(to_client.client_ending().sent, expected.alert);
    EXPECT_FALSE(to_client.client().peer());
    ASSERT_TRUE(to_client.client().refusal());
    EXPECT_THAT(to_client.client().refusal()->error.cause(), HasSubstr(expected.cause));
    EXPECT_EQ(to_client.client().failure(expected.alert).code(), Errc::unauthenticated);
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, TlsRefusalTest,
    ::testing::Values(
        Expected{Flaw::no_certificate, Alert::certificate_required, "presented no certificate"},
        Expected{Flaw::foreign_ca, Alert::unknown_ca, "was not issued by the CA that this node"},
        Expected{Flaw::foreign_chain, Alert::unknown_ca, "was not issued by the CA that this node"},
        Expected{Flaw::impostor_ca, Alert::unknown_ca, "was not issued by the CA that this node"},
        Expected{Flaw::expired, Alert::certificate_expired, "the peer must renew it"},
        Expected{Flaw::just_expired, Alert::certificate_expired, "check the clocks of both hosts"},
        Expected{Flaw::not_yet_valid, Alert::certificate_expired,
                 "2 h too early; check the clocks"},
        Expected{Flaw::other_cluster, Alert::access_denied, "expected: a node of cluster"},
        Expected{Flaw::three_certificates, Alert::bad_certificate, "more than 2 certificates"},
        Expected{Flaw::too_many_names, Alert::bad_certificate, "more than 8 subject alternative"},
        Expected{Flaw::ca_as_node, Alert::bad_certificate, "belongs to a CA"},
        Expected{Flaw::ca_flag, Alert::bad_certificate, "belongs to a CA"},
        Expected{Flaw::no_purpose, Alert::unsupported_certificate, "is not for a TLS"},
        Expected{Flaw::other_purpose, Alert::unsupported_certificate, "is not for a TLS"},
        Expected{Flaw::no_signing, Alert::bad_certificate, "does not allow its key to sign"},
        Expected{Flaw::no_name, Alert::bad_certificate, "has 0 subject alternative names"},
        Expected{Flaw::two_names, Alert::bad_certificate, "has 2 subject alternative names"},
        Expected{Flaw::malformed_name, Alert::bad_certificate, "does not name a node"}),
    [](const auto& param) { return std::string(nexar::testing::name(param.param.flaw)); });

}  // namespace
}  // namespace nexar::security
