#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"

// Receiving: sinks, windows, parked bytes, refusing.
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

void leave_alone(LinkEnd& /*end*/, port::StreamId /*stream*/) {}

TEST(ConnectionRead, a_stream_without_a_sink_waits_within_its_first_window) {
    QuicPair pair({.server = {.first_window = 64 * 1024}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = leave_alone;
    const auto content = pattern(1, 1'000'000);
    const auto stream = pair.client().send(content);
    pair.world.run_for(1s);
    EXPECT_EQ(pair.server().connection().statistics().parked, 64U * 1024);
    EXPECT_EQ(pair.client().outcome(stream), std::nullopt);
    pair.server().receive(pair.server().opened()[0]);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
    EXPECT_EQ(pair.server().connection().statistics().parked, 0U);
}

TEST(ConnectionRead, a_short_stream_may_end_before_it_is_received) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = leave_alone;
    const auto stream = pair.client().send(pattern(1, 5000));
    const auto empty = pair.client().send({});
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered) << "the peer's link has it";
    EXPECT_EQ(pair.client().outcome(empty), SendOutcome::delivered);
    EXPECT_EQ(pair.server().finished(), 0U);
    pair.server().receive(pair.server().opened()[0]);
    pair.server().receive(pair.server().opened()[1]);
    pair.world.run_for(1ms);
    EXPECT_EQ(pair.server().finished(), 2U);
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, pattern(1, 5000));
}

TEST(ConnectionRead, a_stuck_receiver_stalls_only_its_own_streams) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        if (end.opened().size() <= 8) {
            end.incoming(stream).sink.allowance = end.opened().size() * 1000;
        }
        end.receive(stream);
    };
    std::vector<port::StreamId> stuck;
    for (std::size_t i = 0; i < 8; ++i) stuck.push_back(pair.client().send(pattern(i, 9'000'000)));
    pair.world.run_for(2s);
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(pair.server().incoming(i).sink.bytes.size(), (i + 1) * 1000);
    }
    const auto message = pattern(77, 3'000'000);
    ASSERT_TRUE(pair.client().write(Lane::eager, message));
    const auto other = pair.client().send(pattern(9, 20'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().outcome(other).has_value(); }, 10s));
    EXPECT_EQ(pair.server().lane(Lane::eager).bytes, message);
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(pair.client().outcome(stuck[i]), std::nullopt);
        pair.server().incoming(i).sink.allowance = CollectingSink::kUnlimited;
        pair.server().link().wake_sink(pair.server().opened()[i]);
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 10s));
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(pair.server().incoming(i).sink.bytes, pattern(i, 9'000'000));
    }
}

TEST(ConnectionRead, parked_bytes_are_bounded_by_the_budget_and_the_connection_window) {
    const LinkOptions small{
        .first_window = 64 * 1024, .connection_window = 512 * 1024, .park_budget = 1024 * 1024};
    QuicPair pair({.server = small});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = leave_alone;
    for (std::size_t i = 0; i < 200; ++i) pair.client().send(pattern(i, 70'000));
    std::uint64_t most = 0;
    for (int i = 0; i < 500; ++i) {
        pair.world.run_for(1ms);
        most = std::max(most, pair.server().connection().statistics().parked);
    }
    EXPECT_GT(most, 1024U * 1024 * 9 / 10);
    EXPECT_LE(most, 1024U * 1024 + 512 * 1024);
    // All can still be received, in any order.
    const std::size_t first = pair.server().opened().size();
    pair.server().on_opened = {};
    for (std::size_t i = first; i-- > 0;) pair.server().receive(pair.server().opened()[i]);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 20s));
    for (std::size_t i = 0; i < 200; ++i) {
        EXPECT_EQ(pair.server().incoming(i).sink.bytes, pattern(i, 70'000)) << i;
    }
    EXPECT_EQ(pair.server().connection().statistics().parked, 0U);
}

TEST(ConnectionRead, control_gets_through_when_payload_used_all_credit) {
    const LinkOptions small{
        .first_window = 64 * 1024, .connection_window = 512 * 1024, .park_budget = 256 * 1024};
    QuicPair pair({.server = small});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = leave_alone;
    for (std::size_t i = 0; i < 100; ++i) pair.client().send(pattern(i, 70'000));
    pair.world.run_for(1s);
    ASSERT_TRUE(pair.client().write(Lane::control, bytes_of("credit, please")));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().lane(Lane::control).bytes.size() == 14; },
                               100ms));
}

TEST(ConnectionRead, a_lane_with_a_full_sink_continues_when_woken) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    CollectingSink& lane = pair.server().lane(Lane::rpc);
    lane.allowance = 10;
    const auto message = pattern(1, 3'000'000);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    pair.world.run_for(1s);
    EXPECT_EQ(lane.bytes.size(), 10U);
    EXPECT_LE(pair.server().connection().statistics().parked, 1024U * 1024);
    lane.allowance = CollectingSink::kUnlimited;
    pair.server().link().wake_sink(Lane::rpc);
    pair.world.run_for(1s);
    EXPECT_EQ(lane.bytes, message);
}

TEST(ConnectionRead, a_refused_stream_ends_on_both_sides) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        end.link().refuse(stream);
        end.link().refuse(stream);
    };
    const auto stream = pair.client().send(pattern(1, 5'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::refused);
    EXPECT_TRUE(pair.server().incoming(0).aborted);
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes.empty());
}

TEST(ConnectionRead, a_stream_may_be_refused_halfway_and_after_its_end) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        end.incoming(stream).sink.allowance = 500;
        end.receive(stream);
    };
    const auto half_way = pair.client().send(pattern(1, 5'000'000));
    const auto ended = pair.client().send(pattern(2, 2000));
    pair.world.run_for(100ms);
    EXPECT_EQ(pair.client().outcome(ended), SendOutcome::delivered);
    for (const auto stream : pair.server().opened()) pair.server().link().refuse(stream);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.client().outcome(half_way), SendOutcome::refused);
    EXPECT_EQ(pair.server().aborted(), 2U);
    EXPECT_EQ(pair.server().connection().statistics().parked, 0U);
}

TEST(ConnectionRead, a_sink_may_call_the_link) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    LinkEnd& server = pair.server();
    int calls = 0;
    server.on_opened = [&](LinkEnd& end, port::StreamId stream) {
        end.incoming(stream).sink.on_write = [&end, stream, &calls] {
            if (++calls == 3) end.link().refuse(stream);
            if (calls % 2 == 0) end.write(Lane::eager, bytes_of("got some"));
        };
        end.receive(stream);
    };
    const auto stream = pair.client().send(pattern(1, 2'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::refused);
    EXPECT_FALSE(pair.client().lane(Lane::eager).bytes.empty());
    EXPECT_TRUE(server.incoming(0).aborted);
}

TEST(ConnectionRead, the_window_of_a_fast_stream_grows_to_its_limit) {
    QuicPair pair({.weather = {.delay = 20ms}});
    ASSERT_TRUE(pair.connect());
    const TimePoint before = pair.world.now();
    pair.client().send(pattern(1, 50'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
    // This takes 50 round trips of 40 ms with the first window of 1 MiB, and about 10 with one
    // eight times larger.
    EXPECT_LT(pair.world.now() - before, 1s);
}

}  // namespace
}  // namespace nexar::quic
