#include "link/quic/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/quic_pair.hpp"

// How a link begins, lives and ends, on virtual time.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using ::testing::HasSubstr;

TEST(Connection, comes_up_on_both_sides_and_names_the_peers) {
    QuicPair pair;
    LinkEnd& client = pair.dial();
    EXPECT_FALSE(client.was_up());
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    EXPECT_EQ(client.link().peer(), QuicPair::cluster().identity(2));
    EXPECT_EQ(pair.server().link().peer(), QuicPair::cluster().identity(1));
    EXPECT_TRUE(client.connection().dialed());
    EXPECT_FALSE(pair.server().connection().dialed());
}

TEST(Connection, is_up_for_the_dialer_after_two_round_trips) {
    QuicPair pair({.weather = {.delay = 10ms}});
    // A probe of 65000 bytes would fill the first congestion window and delay the server's
    // confirmation.
    pair.client_side.host().interface_limit = 1452;
    pair.server_side.host().interface_limit = 1452;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.connect());
    // One round trip for keys and certificates, one for the server's confirmation.
    EXPECT_GE(pair.world.now() - before, 40ms);
    EXPECT_LT(pair.world.now() - before, 45ms);
}

TEST(Connection, gives_up_when_nobody_answers) {
    QuicPair pair({.client = {.handshake_timeout = 4s}});
    pair.net.weather.cut = true;
    LinkEnd& client = pair.dial();
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 60s));
    EXPECT_FALSE(client.was_up());
    EXPECT_EQ(client.down()->code(), Errc::timed_out);
    EXPECT_THAT(client.down()->cause(), HasSubstr("10.0.0.2:7400"));
    EXPECT_GE(pair.world.now() - before, 4s);
    EXPECT_LT(pair.world.now() - before, 5s);
    pair.world.run_for(10s);
    EXPECT_EQ(pair.client_side.endpoint().connections(), 0U);
}

TEST(Connection, tells_a_dialer_that_its_handshake_has_expired) {
    // A proven address may get more than three times the bytes it sent.
    QuicPair pair({.gate = {.half_open_before_retry = 0}, .weather = {.delay = 1ms}});
    LinkEnd& client = pair.dial();
    ASSERT_TRUE(pair.run_until([&] { return pair.server_side.endpoint().half_open() == 1; }, 1s));
    // The answers of the dialer are lost from now on.
    pair.net.set_weather_to(pair.server_side.host(), {.cut = true});
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 20s));
    EXPECT_FALSE(client.was_up());
    EXPECT_LT(pair.world.now() - before, 3100ms);
    EXPECT_EQ(client.down()->code(), Errc::timed_out);
    EXPECT_THAT(client.down()->cause(), HasSubstr("ended the handshake"));
}

TEST(Connection, a_dialer_that_was_stopped_learns_at_once_that_its_handshake_has_expired) {
    for (const Duration stopped : {3500ms, 8000ms}) {
        QuicPair pair({.gate = {.half_open_before_retry = 0}, .weather = {.delay = 1ms}});
        LinkEnd& client = pair.dial();
        ASSERT_TRUE(
            pair.run_until([&] { return pair.server_side.endpoint().half_open() == 1; }, 1s));
        pair.net.pause(pair.client_side.host(), pair.world.now() + stopped);
        pair.world.run_for(stopped);
        ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 100ms));
        EXPECT_EQ(client.down()->code(), Errc::timed_out);
    }
}

TEST(Connection, a_dialer_that_is_never_confirmed_gives_up_after_the_handshake_timeout) {
    QuicPair pair({.client = {.handshake_timeout = 4s}, .weather = {.delay = 1ms}});
    LinkEnd& client = pair.dial();
    pair.world.run_for(1500us);
    // It receives the server's packets, so TLS completes on its side, but not vice versa.
    pair.net.set_weather_to(pair.server_side.host(), {.cut = true});
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return client.down().has_value(); }, 60s));
    EXPECT_LE(pair.world.now() - before, 4s);
    EXPECT_EQ(client.down()->code(), Errc::timed_out);
}

TEST(Connection, a_server_that_was_stopped_answers_the_dialer_at_once) {
    QuicPair pair({.weather = {.delay = 1ms}});
    LinkEnd& client = pair.dial();
    pair.world.run_for(1500us);
    pair.net.pause(pair.server_side.host(), pair.world.now() + 3500ms);
    pair.world.run_for(3500ms);
    ASSERT_TRUE(pair.run_until([&] { return client.is_up() || client.down(); }, 100ms));
}

TEST(Connection, forgets_a_client_that_sends_only_its_hello) {
    QuicPair pair;
    pair.net.set_weather_to(pair.client_side.host(), {.cut = true});
    pair.dial();
    ASSERT_TRUE(pair.run_until([&] { return pair.server_side.endpoint().half_open() == 1; }, 1s));
    pair.client_side.host().blocked = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return !pair.server_side.refused().empty(); }, 10s));
    EXPECT_LT(pair.world.now() - before, 3500ms);
    EXPECT_EQ(pair.server_side.refused()[0].reason.code(), Errc::timed_out);
    EXPECT_EQ(pair.server_side.refused()[0].from, "10.0.0.1:7400");
    EXPECT_EQ(pair.server_side.endpoint().half_open(), 0U);
    EXPECT_EQ(pair.server_side.endpoint().counts().refused, 1U);
}

TEST(Connection, close_delivers_what_is_enqueued_and_tells_both_sides_why) {
    QuicPair pair({.weather = {.delay = 2ms}});
    ASSERT_TRUE(pair.connect());
    const auto message = pattern(7, 900'000);
    const auto payload = pattern(8, 2'000'000);
    ASSERT_TRUE(pair.client().write(port::Lane::eager, message));
    const auto stream = pair.client().send(payload);
    pair.client().link().close("the job is done");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 10s));
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::delivered);
    EXPECT_EQ(pair.server().lane(port::Lane::eager).bytes, message);
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, payload);
    EXPECT_TRUE(pair.server().incoming(0).finished);
    EXPECT_EQ(pair.client().down()->code(), Errc::link_closed);
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("this side"));
    EXPECT_EQ(pair.server().down()->code(), Errc::link_closed);
    EXPECT_THAT(pair.server().down()->cause(), HasSubstr("10.0.0.1:7400 closed the link"));
    EXPECT_THAT(pair.server().down()->cause(), HasSubstr("the job is done"));
}

TEST(Connection, close_gives_up_flushing_after_the_linger_time) {
    QuicPair pair({.client = {.linger = 500ms}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    const auto stream = pair.client().send(pattern(3, 1'000'000));
    const TimePoint before = pair.world.now();
    pair.client().link().close("in a hurry");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 10s));
    EXPECT_GE(pair.world.now() - before, 500ms);
    EXPECT_LT(pair.world.now() - before, 600ms);
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::link_lost);
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 1s));
}

TEST(Connection, a_reason_for_closing_is_cut_to_200_bytes) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.client().link().close(std::string(150, 'a') + std::string(150, 'b'));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 1s));
    EXPECT_THAT(pair.server().down()->cause(),
                HasSubstr(std::string(150, 'a') + std::string(50, 'b') + "\""));
}

TEST(Connection, repeats_the_close_when_the_peer_missed_it) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(100ms);
    // The server answers the end of the control lane with the end of its own, and the next datagram
    // of the client closes the connection.
    bool answered = false;
    int lost = 0;
    pair.net.tap = [&](const nexar::sim::Datagram& datagram) {
        const bool to_server = datagram.to == pair.server_side.host().address();
        answered = answered || !to_server;
        return !to_server || !answered || lost++ != 0;
    };
    pair.client().link().close("bye");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 1s));
    ASSERT_EQ(lost, 1);
    ASSERT_TRUE(pair.server().write(port::Lane::rpc, bytes_of("still there?")));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 100ms));
    EXPECT_THAT(pair.server().down()->cause(), HasSubstr("bye"));
}

TEST(Connection, notices_a_silent_peer_after_the_idle_timeout) {
    QuicPair pair({.client = {.idle_timeout = 5s, .keep_alive = 1s},
                   .server = {.idle_timeout = 5s, .keep_alive = 1s}});
    ASSERT_TRUE(pair.connect());
    const auto stream = pair.client().send(pattern(4, 100'000));
    pair.net.weather.cut = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 60s));
    EXPECT_GE(pair.world.now() - before, 4900ms);
    EXPECT_LT(pair.world.now() - before, 7s);
    EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("nothing was heard from 10.0.0.2:7400"));
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::link_lost);
}

TEST(Connection, keeps_an_idle_link_alive) {
    QuicPair pair({.client = {.idle_timeout = 3s, .keep_alive = 1s},
                   .server = {.idle_timeout = 3s, .keep_alive = 1s}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1h);
    ASSERT_TRUE(pair.client().is_up());
    ASSERT_TRUE(pair.server().is_up());
    ASSERT_TRUE(pair.server().write(port::Lane::control, bytes_of("hello again")));
    EXPECT_TRUE(pair.run_until(
        [&] { return pair.client().lane(port::Lane::control).bytes.size() == 11; }, 1s));
}

TEST(Connection, the_first_message_does_not_wait_for_an_mtu_probe) {
    QuicPair pair({.weather = {.delay = 50ms}});
    // Two round trips until the client knows that the server has accepted it.
    ASSERT_TRUE(pair.connect(210ms));
    ASSERT_TRUE(pair.client().write(port::Lane::control, bytes_of("hello")));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.server().lane(port::Lane::control).bytes.size() == 5; }, 90ms));
    ASSERT_TRUE(pair.server().write(port::Lane::control, bytes_of("welcome")));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().lane(port::Lane::control).bytes.size() == 7; }, 90ms));
}

TEST(Connection, a_message_after_an_interrupted_handshake_does_not_wait_for_an_mtu_probe) {
    QuicPair pair;
    pair.dial();
    ASSERT_TRUE(
        pair.run_until([&] { return pair.server_side.endpoint().half_open() == 1; }, 100ms));
    // The handshake sees a round trip of 2.5 s, which paces a probe of 65000 bytes over 9 s.
    pair.net.pause(pair.client_side.host(), pair.world.now() + 2500ms);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().is_up(); }, 2600ms));
    pair.run_until([] { return false; }, 1s);  // enough time for a probe
    ASSERT_TRUE(pair.client().write(port::Lane::control, bytes_of("hello")));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.server().lane(port::Lane::control).bytes.size() == 5; }, 50ms));
    ASSERT_TRUE(pair.server().write(port::Lane::control, bytes_of("welcome")));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().lane(port::Lane::control).bytes.size() == 7; }, 50ms));
}

TEST(Connection, carries_datagrams_whole_and_drops_some_rather_than_wait) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);  // until the MTU of the path is known
    const std::size_t most = pair.client().link().max_datagram();
    EXPECT_GT(most, 60'000U);
    EXPECT_FALSE(pair.client().link().send_datagram(pattern(1, most + 1)));
    for (std::size_t bytes : {most, std::size_t{1}, std::size_t{0}, std::size_t{1000}}) {
        EXPECT_TRUE(pair.client().link().send_datagram(pattern(bytes, bytes)));
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.server().datagrams.size() == 4; }, 1s));
    for (const auto& datagram : pair.server().datagrams) {
        EXPECT_EQ(datagram, pattern(datagram.size(), datagram.size()));
    }
    pair.net.set_weather_to(pair.server_side.host(), {.loss = 0.5});
    for (std::size_t i = 0; i < 50; ++i) {
        EXPECT_TRUE(pair.client().link().send_datagram(pattern(i, 40'000)));
    }
    pair.world.run_for(5s);
    EXPECT_GT(pair.server().datagrams.size(), 4U);
    EXPECT_LT(pair.server().datagrams.size(), 54U);
}

TEST(Connection, drops_datagrams_beyond_its_queue) {
    QuicPair pair({.client = {.datagram_queue = 8}});
    ASSERT_TRUE(pair.connect());
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(pair.client().link().send_datagram(bytes_of("d")));
    EXPECT_FALSE(pair.client().link().send_datagram(bytes_of("one too many")));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().datagrams.size() == 8; }, 1s));
    EXPECT_TRUE(pair.client().link().send_datagram(bytes_of("d")));
}

TEST(Connection, a_datagram_beyond_a_shrunken_mtu_delays_nothing) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    ASSERT_GT(pair.client().link().max_datagram(), 60'000U);
    // After a move the MTU of the path is unknown again.
    const Address other = nexar::sim::DatagramNet::address(77);
    pair.client_side.host().add_address(other);
    ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 60'000)));
    ASSERT_TRUE(pair.client().connection().migrate(pair.world.now(), other));
    ASSERT_TRUE(pair.client().write(port::Lane::eager, bytes_of("behind it")));
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.server().lane(port::Lane::eager).bytes.size() == 9; }, 5s));
}

TEST(Connection, calls_on_a_link_that_is_down_only_release) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    port::Link& link = pair.client().link();
    LinkEnd& client = pair.client();
    // Inside the turn in which it goes down the link still exists.
    pair.client().connection().abandon(Error(Errc::link_closed, "for a test"));
    const auto stream = client.send(pattern(1, 100));
    EXPECT_FALSE(client.write(port::Lane::eager, bytes_of("nothing")));
    link.close("again");
    link.cancel(stream);
    link.wake_source(stream);
    link.wake_sink(port::Lane::eager);
    SUCCEED();
}

}  // namespace
}  // namespace nexar::quic
