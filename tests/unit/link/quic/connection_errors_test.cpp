#include "link/quic/connection_errors.hpp"

#include <gmock/gmock.h>
#include <gnutls/gnutls.h>
#include <gtest/gtest.h>

#include <string>

#include "support/quic_pair.hpp"
#include "unit/base/log_capture.hpp"

// Peers that are refused, and what both sides report.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::Flaw;
using nexar::testing::kAllFlaws;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::SharedCredentials;
using nexar::testing::TestCluster;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs a handshake that must fail until it has ended on both sides.
void run_refused(QuicPair& pair) {
    LinkEnd& client = pair.dial();
    ASSERT_TRUE(pair.run_until(
        [&] { return client.down().has_value() && !pair.server_side.refused().empty(); }, 12s));
    EXPECT_FALSE(client.was_up());
    EXPECT_EQ(pair.server_side.accepted_count(), 0U);
    EXPECT_EQ(pair.server_side.refused().size(), 1U);
    EXPECT_EQ(pair.server_side.refused()[0].from, "10.0.0.1:7400");
    EXPECT_EQ(pair.server_side.endpoint().half_open(), 0U);
    pair.world.run_for(30s);
    EXPECT_EQ(pair.client_side.endpoint().connections(), 0U) << "no connection is left behind";
    EXPECT_EQ(pair.server_side.endpoint().connections(), 0U);
}

/// Matches a message without keys, bytes of certificates or bare error codes.
auto says_something_useful() {
    return AllOf(Not(HasSubstr("PRIVATE")), Not(HasSubstr("-----")), Not(HasSubstr("(0)")),
                 Not(HasSubstr("ERR_")));
}

/// Lets a node send a larger handshake than it would accept: GnuTLS has one limit for both
/// directions. When asked for its certificate, it returns the certificate and lifts the limit of
/// the session.
SharedCredentials without_limit(SharedCredentials credentials) {
    static gnutls_certificate_credentials_t native = nullptr;
    native = credentials->native();
    gnutls_certificate_set_retrieve_function(
        native, [](gnutls_session_t session, const gnutls_datum_t*, int,
                   const gnutls_pk_algorithm_t*, int, gnutls_retr2_st* answer) {
            gnutls_handshake_set_max_packet_length(session, 1 << 20);
            *answer = {};
            answer->cert_type = GNUTLS_CRT_X509;
            answer->key_type = GNUTLS_PRIVKEY_X509;
            answer->deinit_all = 1;
            const int code =
                gnutls_certificate_get_x509_crt(native, 0, &answer->cert.x509, &answer->ncerts);
            return code < 0 ? code : gnutls_certificate_get_x509_key(native, 0, &answer->key.x509);
        });
    return credentials;
}

SharedCredentials credentials_with(Flaw flaw, std::uint64_t node) {
    auto credentials = QuicPair::cluster().flawed(flaw, node);
    const bool large = flaw == Flaw::oversized_chain || flaw == Flaw::oversized_certificate;
    return large ? without_limit(std::move(credentials)) : credentials;
}

class RefusedPeer : public ::testing::TestWithParam<Flaw> {};

INSTANTIATE_TEST_SUITE_P(Flaws, RefusedPeer, ::testing::ValuesIn(kAllFlaws),
                         [](const auto& flaw) { return std::string(name(flaw.param)); });

TEST_P(RefusedPeer, a_server_refuses_the_client_inside_the_handshake) {
    QuicPair pair({.client_credentials = credentials_with(GetParam(), 1)});
    ASSERT_NO_FATAL_FAILURE(run_refused(pair));
    const Error& told = *pair.client().down();
    const Error& found = pair.server_side.refused()[0].reason;
    EXPECT_THAT(told.cause(), HasSubstr("10.0.0.2:7400 refused this node"));
    EXPECT_THAT(found.cause(), Not(HasSubstr("refused this node")));
    EXPECT_EQ(found.host(), "10.0.0.1:7400");
    EXPECT_THAT(told.cause(), says_something_useful());
    EXPECT_THAT(found.cause(), says_something_useful());
    EXPECT_EQ(remedy(found.code()), Remedy::give_up) << found.what();
    EXPECT_EQ(remedy(told.code()), Remedy::give_up) << told.what();
}

TEST_P(RefusedPeer, a_client_refuses_the_server_inside_the_handshake) {
    QuicPair pair({.server_credentials = credentials_with(GetParam(), 2)});
    ASSERT_NO_FATAL_FAILURE(run_refused(pair));
    const Error& found = *pair.client().down();
    const Error& told = pair.server_side.refused()[0].reason;
    if (GetParam() == Flaw::no_certificate) {
        EXPECT_THAT(found.cause(), HasSubstr("10.0.0.2:7400 refused this node"))
            << "a server without a certificate cannot answer";
    } else {
        EXPECT_THAT(told.cause(), HasSubstr("10.0.0.1:7400 refused this node"));
        EXPECT_THAT(found.cause(), Not(HasSubstr("refused this node")));
        EXPECT_EQ(found.host(), "10.0.0.2:7400");
    }
    EXPECT_THAT(told.cause(), says_something_useful());
    EXPECT_THAT(found.cause(), says_something_useful());
    EXPECT_EQ(remedy(found.code()), Remedy::give_up) << found.what();
    EXPECT_EQ(remedy(told.code()), Remedy::give_up) << told.what();
}

TEST_P(RefusedPeer, is_refused_on_a_bad_network_as_well) {
    QuicPair pair({.seed = 5,
                   .weather = {.jitter = 2ms, .loss = 0.2, .duplicate = 0.1},
                   .client_credentials = credentials_with(GetParam(), 1)});
    LinkEnd& client = pair.dial();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 15s));
    pair.world.run_for(15s);
    EXPECT_FALSE(client.was_up());
    EXPECT_EQ(pair.server_side.accepted_count(), 0U);
    EXPECT_EQ(pair.server_side.endpoint().half_open(), 0U);
}

TEST(ConnectionErrors, a_server_with_an_unexpected_node_id_is_refused) {
    QuicPair pair;
    LinkEnd& client = pair.client_side.dial(
        pair.server_side.host().address(),
        {.cluster = QuicPair::cluster().id(), .node = TestCluster::node_id(3)});
    ASSERT_TRUE(pair.run_until(
        [&] { return client.down().has_value() && !pair.server_side.refused().empty(); }, 5s));
    EXPECT_FALSE(client.was_up());
    EXPECT_EQ(client.down()->code(), Errc::unauthenticated);
    EXPECT_THAT(client.down()->cause(), HasSubstr(TestCluster::node_id(3).to_hex()));
    EXPECT_THAT(client.down()->cause(), HasSubstr(TestCluster::node_id(2).to_hex()));
    EXPECT_EQ(pair.server_side.refused()[0].reason.code(), Errc::unauthenticated);
    EXPECT_THAT(pair.server_side.refused()[0].reason.cause(),
                HasSubstr("10.0.0.1:7400 refused this node"));
}

TEST(ConnectionErrors, any_node_of_the_cluster_is_accepted_when_none_is_expected) {
    QuicPair pair;
    LinkEnd& client = pair.client_side.dial(pair.server_side.host().address(),
                                            {.cluster = QuicPair::cluster().id(), .node = {}});
    EXPECT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
}

TEST(ConnectionErrors, a_refused_client_learns_the_servers_reason) {
    QuicPair pair({.client_credentials = QuicPair::cluster().flawed(Flaw::expired, 1)});
    ASSERT_NO_FATAL_FAILURE(run_refused(pair));
    EXPECT_EQ(pair.client().down()->code(), Errc::unauthenticated);
    EXPECT_THAT(pair.client().down()->cause(),
                AllOf(HasSubstr("10.0.0.2:7400 refused this node"), HasSubstr("expired")));
    EXPECT_EQ(pair.server_side.refused()[0].reason.code(), Errc::unauthenticated);
    EXPECT_THAT(pair.server_side.refused()[0].reason.cause(), HasSubstr("expired"));
}

TEST(ConnectionErrors, a_send_before_down_was_polled_is_released_before_it) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.client().connection().abandon(Error(Errc::link_closed, "gone"));
    const port::StreamId stream = pair.client().send(pattern(1, 100'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }));
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::link_lost);
}

TEST(ConnectionErrors, a_handshake_beyond_its_limit_is_not_buffered) {
    QuicPair pair({.client_credentials = credentials_with(Flaw::oversized_chain, 1)});
    ASSERT_NO_FATAL_FAILURE(run_refused(pair));
    EXPECT_THAT(pair.server_side.refused()[0].reason.cause(), HasSubstr("bytes of handshake"));
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("your handshake exceeds"));
}

TEST(ConnectionErrors, the_client_waits_for_the_servers_confirmation_before_it_is_up) {
    QuicPair pair({.weather = {.delay = 5ms}});
    // The client's second flight, which carries its certificate, is lost for a while.
    LinkEnd& client = pair.dial();
    pair.world.run_for(6ms);
    pair.net.set_weather_to(pair.server_side.host(), {.cut = true});
    pair.world.run_for(500ms);
    EXPECT_FALSE(client.was_up()) << "the server has not checked our certificate";
    pair.net.set_weather_to(pair.server_side.host(), {.delay = 5ms});
    EXPECT_TRUE(pair.run_until([&] { return client.is_up(); }, 5s));
}

TEST(ConnectionErrors, one_side_without_protection_is_refused_by_the_other) {
    for (const bool bare_client : {true, false}) {
        PairOptions options;
        (bare_client ? options.client : options.server).protection = Protection::none;
        set_log_level(LogLevel::off);
        QuicPair pair(options);
        set_log_level(LogLevel::warning);
        ASSERT_NO_FATAL_FAILURE(run_refused(pair));
        const Error& here = *pair.client().down();
        const Error& there = pair.server_side.refused()[0].reason;
        EXPECT_EQ(here.code(), Errc::version_mismatch) << here.what();
        EXPECT_EQ(there.code(), Errc::version_mismatch) << there.what();
        EXPECT_THAT(here.cause(), HasSubstr("protection=none"));
        EXPECT_THAT(there.cause(), HasSubstr("protection=none"));
    }
}

TEST(ConnectionErrors, without_protection_on_both_sides_each_warns_once_and_data_flows) {
    LogCapture log;
    const LinkOptions bare{.protection = Protection::none};
    QuicPair pair({.client = bare, .server = bare});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 2'000'000);
    pair.client().send(content);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 5s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
    EXPECT_EQ(pair.server().link().peer(), QuicPair::cluster().identity(1))
        << "peers are still authenticated";
    ASSERT_EQ(log.lines().size(), 2U) << "each endpoint warns once";
    EXPECT_EQ(log.lines()[0].level, LogLevel::warning);
    EXPECT_THAT(log.lines()[0].text, HasSubstr("protection=none"));
}

TEST(ConnectionErrors, without_protection_strangers_are_still_refused) {
    LogCapture log;
    const LinkOptions bare{.protection = Protection::none};
    QuicPair pair({.client = bare,
                   .server = bare,
                   .client_credentials = QuicPair::cluster().flawed(Flaw::foreign_ca, 1)});
    ASSERT_NO_FATAL_FAILURE(run_refused(pair));
    EXPECT_EQ(pair.server_side.refused()[0].reason.code(), Errc::unauthenticated);
}

}  // namespace
}  // namespace nexar::quic
