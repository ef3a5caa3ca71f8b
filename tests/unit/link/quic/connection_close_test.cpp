#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

// Closing: streams in flight, and what each side knows about the other afterwards.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::bytes_of;
using nexar::testing::CollectingSink;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using port::Lane;
using port::SendOutcome;

TEST(ConnectionClose, the_sender_knows_that_all_was_delivered_when_the_receiver_closes_at_once) {
    const std::uint64_t first = test_seed(900);
    for (std::uint64_t seed = first; seed < first + 60; ++seed) {
        QuicPair pair({.seed = seed, .weather = {.delay = 1ms, .loss = 0.2}});
        ASSERT_TRUE(pair.connect(30s)) << seed;
        const auto content = pattern(seed, 1 + pair.world.random().below(200'000));
        const auto stream = pair.client().send(content);
        ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }, 30s)) << seed;
        pair.server().link().close("I have it all");
        ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 60s)) << seed;
        EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered) << seed;
        ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }, 3s));
        EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content) << seed;
    }
}

TEST(ConnectionClose, the_peer_finishes_its_streams) {
    QuicPair pair({.weather = {.delay = 5ms}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 5'000'000);
    const auto message = pattern(2, 100'000);
    const auto stream = pair.client().send(content);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    pair.world.run_for(12ms);
    pair.server().link().close("enough");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 1s));
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_EQ(pair.server().lane(Lane::rpc).bytes, message);
    EXPECT_THAT(pair.client().down()->cause(), ::testing::HasSubstr("enough"));
}

TEST(ConnectionClose, both_may_close_at_the_same_time) {
    const std::uint64_t first = test_seed(70);
    for (std::uint64_t seed = first; seed < first + 30; ++seed) {
        QuicPair pair({.seed = seed, .weather = {.delay = 1ms, .jitter = 1ms, .loss = 0.1}});
        ASSERT_TRUE(pair.connect(30s)) << seed;
        const auto there = pair.client().send(pattern(seed, 30'000));
        const auto back = pair.server().send(pattern(seed + 1, 50'000));
        pair.client().link().close("one");
        pair.server().link().close("other");
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }))
            << seed;
        EXPECT_EQ(pair.client().outcome(there), SendOutcome::delivered) << seed;
        EXPECT_EQ(pair.server().outcome(back), SendOutcome::delivered) << seed;
    }
}

TEST(ConnectionClose, waits_half_a_second_for_a_peer_that_does_not_answer) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    pair.net.weather.cut = true;
    const TimePoint before = pair.world.now();
    pair.client().link().close("anybody there?");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 10s));
    EXPECT_GE(pair.world.now() - before, 500ms);
    EXPECT_LT(pair.world.now() - before, 550ms);
    EXPECT_EQ(pair.client().down()->code(), Errc::link_closed);
}

TEST(ConnectionClose, delivers_messages_on_a_link_that_was_idle_for_a_long_time) {
    const LinkOptions seldom{.keep_alive = 20s};
    QuicPair pair({.client = seldom, .server = seldom, .weather = {.delay = 5ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(15s);
    const auto content = pattern(7, 300'001);
    const auto stream = pair.client().send(content);
    pair.client().link().close("that was all");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 5s));
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
}

TEST(ConnectionClose, waits_three_probe_timeouts_for_a_peer_that_is_far_away) {
    const LinkOptions quick{.linger = 10ms};
    QuicPair pair({.client = quick, .weather = {.delay = 250ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(2s);
    const auto stream = pair.client().send(pattern(7, 10'001));
    const TimePoint before = pair.world.now();
    pair.client().link().close("from afar");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 10s));
    EXPECT_GE(pair.world.now() - before, 500ms);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
}

TEST(ConnectionClose, does_not_wait_longer_for_a_peer_that_answered) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    const TimePoint before = pair.world.now();
    pair.client().link().close("bye");
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 1s));
    EXPECT_LT(pair.world.now() - before, 10ms);
}

TEST(ConnectionClose, the_sink_of_a_control_lane_that_ended_can_be_woken) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    CollectingSink& control = pair.server().lane(Lane::control);
    control.allowance = 10;
    // A stream that nobody receives keeps the server from answering.
    pair.client().on_opened = [](LinkEnd&, port::StreamId) {};
    const auto stuck = pair.server().send(pattern(2, 500'000));
    const auto message = pattern(1, 3000);
    ASSERT_TRUE(pair.client().write(Lane::control, message));
    pair.client().link().close("last words");
    pair.world.run_for(100ms);
    ASSERT_TRUE(pair.server().is_up());
    EXPECT_EQ(control.bytes.size(), 10U);
    control.allowance = CollectingSink::kUnlimited;
    pair.server().link().wake_sink(Lane::control);
    pair.world.run_for(1ms);
    EXPECT_EQ(control.bytes, message);
    pair.server().link().wake_sink(Lane::control);
    EXPECT_TRUE(pair.server().write(Lane::control, bytes_of("heard you")));
    pair.world.run_for(50ms);
    EXPECT_EQ(pair.client().lane(Lane::control).bytes.size(), 9U);
    EXPECT_EQ(pair.server().finished() + pair.server().aborted(), 0U);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 1s));
    EXPECT_EQ(pair.server().outcome(stuck), SendOutcome::link_lost);
}

TEST(ConnectionClose, writes_to_the_control_lane_after_its_end_are_dropped) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.client().link().close("bye");
    pair.world.run_for(100us);
    ASSERT_TRUE(pair.client().is_up());
    EXPECT_TRUE(pair.client().write(Lane::control, bytes_of("too late")));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 1s));
    EXPECT_TRUE(pair.server().lane(Lane::control).bytes.empty());
}

TEST(ConnectionClose, down_has_the_lane_bytes_that_were_not_taken_and_not_confirmed) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto first = pattern(1, 1'000);
    const auto second = pattern(2, 70'000);
    pair.server().lane(Lane::rpc).allowance = 400;
    ASSERT_TRUE(pair.client().write(Lane::rpc, first));
    pair.world.run_for(500ms);
    pair.net.weather.loss = 1;
    ASSERT_TRUE(pair.client().write(Lane::rpc, second));
    pair.world.run_for(10ms);
    EXPECT_EQ(pair.client().link().kind(), "quic");
    const auto index = static_cast<std::size_t>(Lane::rpc);
    for (LinkEnd* end : {&pair.client(), &pair.server()}) {
        end->connection().abandon(Error(Errc::timed_out, "cut"));
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 1s));
    EXPECT_EQ(pair.client().unconfirmed[index].offset, 1'000U);
    EXPECT_EQ(pair.client().unconfirmed[index].bytes, second);
    EXPECT_TRUE(pair.client().unconfirmed[0].bytes.empty());
    const auto& untaken = pair.server().untaken[index];
    EXPECT_EQ(untaken.offset, 400U);
    EXPECT_EQ(untaken.bytes, std::vector(first.begin() + 400, first.end()));
}

}  // namespace
}  // namespace nexar::quic
