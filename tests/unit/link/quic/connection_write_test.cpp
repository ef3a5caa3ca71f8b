#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "port/memory.hpp"
#include "support/quic_pair.hpp"
#include "support/unmappable_memory.hpp"

// Sending: lanes, payload streams, priorities, limits, cancelling.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::AskedSource;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::UnmappableMemory;
using port::Lane;
using port::SendOutcome;
using ::testing::ElementsAre;

constexpr std::array kLanes = {Lane::control, Lane::rpc, Lane::eager};

TEST(ConnectionWrite, lanes_are_ordered_byte_streams_in_both_directions) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    std::array<std::vector<std::byte>, 6> sent;
    for (std::size_t round = 0; round < 200; ++round) {
        for (std::size_t i = 0; i < 6; ++i) {
            const auto piece = pattern(round * 6 + i, 1 + round * 17 % 3000);
            LinkEnd& from = i < 3 ? pair.client() : pair.server();
            ASSERT_TRUE(from.write(kLanes[i % 3], piece));
            sent[i].insert(sent[i].end(), piece.begin(), piece.end());
        }
        pair.world.run_for(50us);
    }
    pair.world.run_for(1s);
    for (std::size_t i = 0; i < 6; ++i) {
        LinkEnd& at = i < 3 ? pair.server() : pair.client();
        EXPECT_EQ(at.lane(kLanes[i % 3]).bytes, sent[i]) << i;
    }
}

TEST(ConnectionWrite, a_write_of_several_pieces_is_one_message) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto a = pattern(1, 10);
    const auto b = pattern(2, 70'000);
    const std::array<port::ConstBytes, 4> pieces{a, {}, b, a};
    ASSERT_TRUE(pair.server().link().write(Lane::rpc, pieces));
    pair.world.run_for(1s);
    std::vector<std::byte> whole = a;
    whole.insert(whole.end(), b.begin(), b.end());
    whole.insert(whole.end(), a.begin(), a.end());
    EXPECT_EQ(pair.client().lane(Lane::rpc).bytes, whole);
}

TEST(ConnectionWrite, a_full_lane_refuses_whole_messages_until_it_is_writable) {
    QuicPair pair({.client = {.lane_queue = 100'000}});
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.client().write(Lane::eager, pattern(1, 60'000)));
    EXPECT_FALSE(pair.client().write(Lane::eager, pattern(2, 60'000)));
    EXPECT_TRUE(pair.client().write(Lane::eager, pattern(3, 40'000)));
    EXPECT_TRUE(pair.client().write(Lane::rpc, pattern(4, 60'000)))
        << "each lane has its own queue";
    EXPECT_EQ(pair.client().writable, 0U);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().writable == 1; }, 1s));
    EXPECT_TRUE(pair.client().write(Lane::eager, pattern(5, 20'000)));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().writable, 1U) << "only the lane that refused a write reports it";
    std::vector<std::byte> whole = pattern(1, 60'000);
    for (const auto& more : {pattern(3, 40'000), pattern(5, 20'000)}) {
        whole.insert(whole.end(), more.begin(), more.end());
    }
    EXPECT_EQ(pair.server().lane(Lane::eager).bytes, whole);
}

TEST(ConnectionWrite, payload_streams_of_any_size_arrive_whole_however_they_are_cut) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    std::vector<std::vector<std::byte>> sent;
    for (std::size_t bytes :
         {0U, 1U, 63U, 64U, 65U, 1200U, 65'535U, 65'536U, 65'537U, 3'000'000U}) {
        for (std::size_t regions : {1U, 3U, 40U}) {
            sent.push_back(pattern(bytes + regions, bytes));
            pair.client().send(sent.back(), {}, regions);
        }
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
    ASSERT_EQ(pair.server().finished(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(pair.server().incoming(i).sink.bytes, sent[i]) << i;
    }
}

TEST(ConnectionWrite, a_prefix_precedes_the_content) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto prefix = pattern(1, port::kMaxPrefixBytes);
    const auto content = pattern(2, 200'000);
    AskedSource asked(content);
    pair.client().send(content, {.prefix = prefix}, 3);
    pair.client().send_from(asked, {.prefix = prefix});
    pair.client().send({}, {.prefix = prefix}, 0);
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 3; }, 10s));
    std::vector<std::byte> whole = prefix;
    EXPECT_EQ(pair.server().incoming(2).sink.bytes, whole);
    whole.insert(whole.end(), content.begin(), content.end());
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, whole);
    EXPECT_EQ(pair.server().incoming(1).sink.bytes, whole);
}

TEST(ConnectionWrite, a_source_without_bytes_delays_only_its_own_stream) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(9, 4'000'000);
    AskedSource slow(content, 100'000);
    const auto stream = pair.client().send_from(slow);
    const auto other = pair.client().send(pattern(10, 1'000'000));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().outcome(other), SendOutcome::delivered);
    EXPECT_EQ(pair.client().outcome(stream), std::nullopt);
    EXPECT_EQ(pair.server().incoming(0).sink.bytes.size(), 100'000U);
    for (slow.available = 100'001; slow.available < content.size(); slow.available += 777'777) {
        pair.client().link().wake_source(stream);
        pair.world.run_for(100ms);
        EXPECT_EQ(pair.server().incoming(0).sink.bytes.size(), slow.available);
    }
    slow.available = content.size();
    pair.client().link().wake_source(stream);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
}

TEST(ConnectionWrite, a_source_is_asked_for_a_bounded_amount_ahead) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    AskedSource large(pattern(1, 8'000'000));
    pair.client().send_from(large);
    pair.world.run_for(1s);
    EXPECT_LE(large.asked, OutStream::kMaxStagedBytes + 2 * 64 * 1024);
    pair.server().receive(pair.server().opened()[0]);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 10s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, pattern(1, 8'000'000));
}

TEST(ConnectionWrite, many_streams_at_once_share_the_link) {
    QuicPair pair({.client = {.bulk_window = 256 * 1024, .bulk_window_max = 256 * 1024},
                   .server = {.bulk_window = 256 * 1024, .bulk_window_max = 256 * 1024}});
    ASSERT_TRUE(pair.connect());
    constexpr std::size_t kStreams = 200;
    std::size_t least = ~std::size_t{0};
    for (std::size_t i = 0; i < kStreams; ++i) pair.client().send(pattern(i, 300'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() != 0; }));
    for (std::size_t i = 0; i < kStreams; ++i) {
        least = std::min(least, pair.server().incoming(i).sink.bytes.size());
    }
    // Each stream's share of the connection window.
    EXPECT_GT(least, 80'000U) << "round-robin: no stream is left behind";
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
    for (std::size_t i = 0; i < kStreams; ++i) {
        ASSERT_EQ(pair.server().incoming(i).sink.bytes, pattern(i, 300'000)) << i;
    }
}

TEST(ConnectionWrite, a_small_message_overtakes_bulk) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 40'000'000));
    pair.world.run_for(20ms);
    const std::size_t before = pair.server().incoming(0).sink.bytes.size();
    ASSERT_TRUE(pair.client().write(Lane::eager, bytes_of("barrier")));
    pair.client().send(bytes_of("critical"), {.priority = port::Priority::critical});
    const TimePoint asked = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] {
        return pair.server().lane(Lane::eager).bytes.size() == 7 && pair.server().finished() == 1;
    }));
    EXPECT_LT(pair.world.now() - asked, 4ms);
    EXPECT_FALSE(pair.server().incoming(0).finished);
    EXPECT_GT(pair.server().incoming(0).sink.bytes.size(), before) << "bulk continues";
}

TEST(ConnectionWrite, no_class_starves_behind_a_higher_one) {
    // The window is the bottleneck: a lane that always has bytes gets everything except the floor.
    QuicPair pair({.client = {.lane_queue = 64 << 20}, .weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 2'000'000));
    ASSERT_TRUE(pair.client().write(Lane::rpc, pattern(2, 30'000'000)));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }));
    EXPECT_LT(pair.server().lane(Lane::rpc).bytes.size(), 30'000'000U);
}

TEST(ConnectionWrite, streams_beyond_the_peers_limit_wait_their_turn) {
    QuicPair pair({.server = {.max_streams = 4}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    for (std::size_t i = 0; i < 10; ++i) pair.client().send(pattern(i, 1000 + i));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.server().opened().size(), 4U);
    for (std::size_t i = 0; i < 10; ++i) {
        pair.server().receive(pair.server().opened().at(i));
        pair.world.run_for(10ms);
        EXPECT_EQ(pair.server().opened().size(), std::min<std::size_t>(10, 5 + i));
    }
    EXPECT_EQ(pair.server().finished(), 10U);
    EXPECT_TRUE(pair.client().all_released());
}

TEST(ConnectionWrite, cancel_before_the_stream_is_open_releases_at_once) {
    QuicPair pair({.server = {.max_streams = 1}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    pair.client().send(pattern(1, 100'000));
    const auto waiting = pair.client().send(pattern(2, 100'000));
    pair.world.run_for(100ms);
    pair.client().link().cancel(waiting);
    pair.client().link().cancel(waiting);
    pair.world.run_for(0s);
    EXPECT_EQ(pair.client().outcome(waiting), SendOutcome::cancelled);
    EXPECT_EQ(pair.server().opened().size(), 1U);
}

TEST(ConnectionWrite, cancel_halfway_releases_at_once_and_aborts_at_the_peer) {
    QuicPair pair({.weather = {.delay = 5ms}});
    ASSERT_TRUE(pair.connect());
    const auto stream = pair.client().send(pattern(1, 30'000'000));
    pair.world.run_for(50ms);
    ASSERT_EQ(pair.server().opened().size(), 1U);
    pair.client().link().cancel(stream);
    pair.world.run_for(0s);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::cancelled);
    EXPECT_FALSE(pair.server().incoming(0).aborted) << "the peer does not know yet";
    pair.world.run_for(100ms);
    EXPECT_TRUE(pair.server().incoming(0).aborted);
    EXPECT_FALSE(pair.server().incoming(0).finished);
}

TEST(ConnectionWrite, cancel_after_all_was_delivered_changes_nothing) {
    QuicPair pair({.weather = {.delay = 5ms}});
    ASSERT_TRUE(pair.connect());
    const auto stream = pair.client().send(pattern(1, 1000));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    pair.client().link().cancel(stream);
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
    EXPECT_TRUE(pair.server().incoming(0).finished);
}

TEST(ConnectionWrite, cancel_while_the_end_is_in_flight_reports_either_outcome) {
    for (const Duration when : {1us, 5'100us, 9'000us, 10'200us}) {
        QuicPair pair({.weather = {.delay = 5ms}});
        ASSERT_TRUE(pair.connect());
        const auto stream = pair.client().send(pattern(1, 1000));
        pair.world.run_for(when);
        pair.client().link().cancel(stream);
        ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
        pair.world.run_for(100ms);
        if (pair.server().opened().empty()) continue;
        const auto& in = pair.server().incoming(0);
        EXPECT_NE(in.finished, in.aborted) << when.count();
        const auto outcome = pair.client().outcome(stream);
        if (outcome == SendOutcome::delivered) {
            EXPECT_TRUE(in.finished) << when.count();
        } else if (outcome == SendOutcome::cancelled) {
            EXPECT_TRUE(in.aborted) << when.count();
        }
    }
}

TEST(ConnectionWrite, cancelled_memory_is_not_read_again_however_many_packets_are_lost) {
    for (const double loss : {0.0, 0.3, 1.0}) {
        SCOPED_TRACE(loss);
        QuicPair pair({.weather = {.delay = 2ms}});
        ASSERT_TRUE(pair.connect());
        pair.world.run_for(1s);
        const UnmappableMemory memory(8'000'000);
        const std::array regions{port::ConstBytes(memory.bytes())};
        port::MemorySource source(regions);
        const auto stream = pair.client().send_from(source);
        const auto later = pattern(2, 300'000);
        pair.world.run_for(11ms);
        pair.net.weather.loss = loss;
        pair.world.run_for(3ms);
        pair.client().link().cancel(stream);
        pair.world.run_for(0s);
        ASSERT_EQ(pair.client().outcome(stream), SendOutcome::cancelled);
        memory.unmap();  // a read would crash the test
        pair.world.run_for(3s);
        pair.net.weather.loss = 0;
        pair.client().send(later);
        ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 20s));
        EXPECT_EQ(pair.server().incoming(pair.server().opened().size() - 1).sink.bytes, later);
    }
}

TEST(ConnectionWrite, a_blocked_socket_does_not_delay_the_release_of_cancelled_memory) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](LinkEnd&, port::StreamId) {};
    const auto stream = pair.client().send(pattern(1, 900'000));
    const auto incoming = pair.server().send(pattern(2, 900'000));
    pair.client().on_opened = [](LinkEnd&, port::StreamId) {};
    pair.world.run_for(100ms);
    ASSERT_EQ(pair.client().opened().size(), 1U);
    pair.client_side.host().blocked = true;
    ASSERT_TRUE(pair.client().write(Lane::eager, pattern(3, 200'000)));
    pair.world.run_for(0s);
    pair.client().link().cancel(stream);
    pair.client().link().refuse(pair.client().opened()[0]);
    pair.client_side.host().flush(pair.world.now());
    pair.world.run_for(0s);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::cancelled);
    EXPECT_EQ(pair.client().aborted(), 1U);
    EXPECT_EQ(pair.server().aborted(), 0U) << "the socket was not blocked";
    pair.client_side.host().blocked = false;
    pair.world.run_for(1s);
    EXPECT_EQ(pair.server().aborted(), 1U);
    EXPECT_EQ(pair.server().outcome(incoming), SendOutcome::refused);
}

TEST(ConnectionWrite, cancelled_streams_cost_the_link_no_credit) {
    // Each stream ends within its window: if its credit were lost, the connection's would run out.
    QuicPair pair({.server = {.connection_window = 2 << 20}, .weather = {.delay = 1ms}});
    pair.net.weather.loss = 0.05;
    ASSERT_TRUE(pair.connect());
    for (std::size_t i = 0; i < 60; ++i) {
        const bool refused = i % 2 == 0;
        pair.server().on_opened = [&](LinkEnd& end, port::StreamId stream) {
            if (i % 3 != 0) end.receive(stream);
        };
        const auto stream = pair.client().send(pattern(i, 500'000));
        ASSERT_TRUE(pair.run_until([&] { return pair.server().opened().size() == i + 1; }, 20s));
        pair.world.run_for(2ms);
        if (refused) {
            pair.server().link().refuse(pair.server().opened()[i]);
        } else {
            pair.client().link().cancel(stream);
        }
        ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 20s)) << i;
    }
    pair.world.run_for(1s);
    pair.server().on_opened = {};
    const auto whole = pattern(99, 6'000'000);
    pair.client().send(whole);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 60s));
    EXPECT_EQ(pair.server().incoming(60).sink.bytes, whole);
}

TEST(ConnectionWrite, a_flush_is_not_urgent_when_no_packet_is_due) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    Connection& client = *pair.client_side.endpoint().find(pair.client().link().id());
    const auto can_wait = [&] { return client.can_wait(pair.world.now()); };
    EXPECT_TRUE(can_wait());
    EXPECT_FALSE(pair.client_side.endpoint().flush_is_urgent(pair.world.now()));

    ASSERT_TRUE(pair.client().write(Lane::eager, pattern(1, 10)));
    EXPECT_FALSE(can_wait()) << "the message";
    EXPECT_TRUE(pair.client_side.endpoint().flush_is_urgent(pair.world.now()));
    pair.world.run_for(1s);
    EXPECT_TRUE(can_wait());

    pair.client().send(pattern(2, 100'000));
    EXPECT_FALSE(can_wait()) << "payload, until it is acknowledged";
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
    pair.world.run_for(1s);
    EXPECT_TRUE(can_wait());

    EXPECT_FALSE(client.can_wait(client.deadline())) << "a timer";
}

}  // namespace
}  // namespace nexar::quic
