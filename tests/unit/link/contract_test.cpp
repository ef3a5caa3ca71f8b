#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "port/memory.hpp"
#include "support/quic_pair.hpp"
#include "support/shm_pair.hpp"
#include "support/unmappable_memory.hpp"
#include "unit/link/growing_source.hpp"
#include "unit/link/sim/sim_pair.hpp"

/// What port::Link promises, for every kind of link: code above links sees no difference. A new
/// kind adds its pair of nodes to the list of types.
namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;
using port::SendOutcome;
using port::StreamId;
using ::testing::HasSubstr;

template <class Pair>
class LinkContract : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(pair_.connect()); }
    LinkEnd& client() { return pair_.client(); }
    LinkEnd& server() { return pair_.server(); }
    bool run_until(const std::function<bool()>& done) { return pair_.run_until(done); }
    void settle() { pair_.world.run_for(500ms); }

    Pair pair_;
};

using Kinds = ::testing::Types<SimPair, QuicPair, ShmPair>;
TYPED_TEST_SUITE(LinkContract, Kinds);

TYPED_TEST(LinkContract, both_sides_come_up_and_know_who_dialed) {
    EXPECT_TRUE(this->client().dialed());
    EXPECT_FALSE(this->server().dialed());
    EXPECT_NE(this->client().link().peer(), this->server().link().peer());
}

TYPED_TEST(LinkContract, each_lane_carries_its_bytes_in_order_both_ways) {
    std::array<std::vector<std::byte>, port::kLanes> written;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const auto bytes = pattern(i, 1 + i * 97);
        ASSERT_TRUE(this->client().write(static_cast<Lane>(i % 3), bytes));
        ASSERT_TRUE(this->server().write(static_cast<Lane>((i + 1) % 3), bytes));
        auto& all = written[i % 3];
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
    this->settle();
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        EXPECT_EQ(this->server().lane(static_cast<Lane>(i)).bytes, written[i]);
        EXPECT_EQ(this->client().lane(static_cast<Lane>((i + 1) % 3)).bytes, written[i]);
    }
}

TYPED_TEST(LinkContract, a_prefix_precedes_the_content_of_a_stream) {
    const auto prefix = pattern(1, port::kMaxPrefixBytes);
    const auto content = pattern(2, 300'000);
    const StreamId stream = this->client().send(content, {.prefix = prefix}, 7);
    ASSERT_TRUE(this->run_until([&] { return this->server().finished() == 1; }));
    auto expected = prefix;
    expected.insert(expected.end(), content.begin(), content.end());
    EXPECT_EQ(this->server().incoming(0).sink.bytes, expected);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
}

TYPED_TEST(LinkContract, regions_are_sent_as_they_become_ready) {
    const auto content = pattern(3, 900'000);
    GrowingSource source(content, 333'333);
    const StreamId stream = this->client().send_from(source);
    for (const std::size_t step : {0U, 1U, 70'000U, 333'333U, 333'334U, 899'999U}) {
        source.grow_to(step);
        this->client().link().wake_source(stream);
        this->settle();
        const bool opened = !this->server().opened().empty();
        EXPECT_EQ(opened ? this->server().incoming(0).sink.bytes.size() : 0, step);
        EXPECT_EQ(this->server().finished(), 0U);
    }
    source.grow_to(content.size());
    this->client().link().wake_source(stream);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
    EXPECT_TRUE(this->server().incoming(0).sink.bytes == content);
}

TYPED_TEST(LinkContract, an_empty_stream_is_opened_and_finished) {
    const StreamId stream = this->client().send({});
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->server().finished(), 1U);
    EXPECT_EQ(this->server().incoming(0).size, 0U);
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
}

TYPED_TEST(LinkContract, a_stream_waits_for_its_sink) {
    this->server().on_opened = [](LinkEnd&, StreamId) {};
    const auto content = pattern(3, 200'000);
    this->client().send(content);
    this->settle();
    ASSERT_EQ(this->server().opened().size(), 1U);
    EXPECT_FALSE(this->client().all_released()) << "more than the first window arrived";
    this->server().receive(this->server().opened()[0]);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->server().incoming(0).sink.bytes, content);
}

TYPED_TEST(LinkContract, a_stream_within_the_first_window_is_delivered_before_its_sink_is_set) {
    this->server().on_opened = [](LinkEnd&, StreamId) {};
    const auto content = pattern(3, 60'000);
    const StreamId stream = this->client().send(content);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
    this->server().receive(this->server().opened()[0]);
    ASSERT_TRUE(this->run_until([&] { return this->server().finished() == 1; }));
    EXPECT_EQ(this->server().incoming(0).sink.bytes, content);
}

TYPED_TEST(LinkContract, no_more_than_the_first_window_arrives_before_it_is_opened) {
    this->server().on_opened = [](LinkEnd& end, StreamId stream) {
        end.incoming(stream).in_sink = true;
        end.link().receive(stream, end.incoming(stream).sink);
    };
    const auto content = pattern(3, 100'000);
    this->client().send(content);
    this->settle();
    // The sink took everything it got, which does not open the window.
    EXPECT_EQ(this->server().incoming(0).sink.bytes.size(),
              wire::kBulkHeadBytes + wire::kBulkPreambleBytes);
    EXPECT_FALSE(this->client().all_released());
    this->server().link().open_window(this->server().opened()[0]);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->server().incoming(0).sink.bytes, content);
}

TYPED_TEST(LinkContract, delivered_bytes_that_no_sink_took_come_with_down) {
    this->server().on_opened = [](LinkEnd& end, StreamId stream) {
        end.incoming(stream).sink.allowance = end.opened().size() == 1 ? 1'000 : 0;
        end.receive(stream);
    };
    const auto first = pattern(3, 60'001);
    const auto second = pattern(4, 700);
    this->client().send(first);
    this->client().send(second);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    this->client().link().close("done");
    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    const auto& rests = this->server().rests();
    ASSERT_EQ(rests.size(), 2U);
    auto whole = this->server().incoming(0).sink.bytes;
    EXPECT_EQ(rests[0].offset, 1'000U);
    whole.insert(whole.end(), rests[0].bytes.begin(), rests[0].bytes.end());
    EXPECT_EQ(whole, first);
    EXPECT_EQ(rests[1].stream, this->server().opened()[1]);
    EXPECT_EQ(rests[1].bytes, second);
}

TYPED_TEST(LinkContract, a_refused_stream_ends_on_both_sides) {
    this->server().on_opened = [](LinkEnd& end, StreamId stream) { end.link().refuse(stream); };
    const StreamId stream = this->client().send(pattern(4, 500'000));
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::refused);
    EXPECT_EQ(this->server().aborted(), 1U);
}

TYPED_TEST(LinkContract, a_cancelled_stream_ends_on_both_sides) {
    this->server().on_opened = [](LinkEnd&, StreamId) {};
    const StreamId stream = this->client().send(pattern(5, 500'000));
    this->settle();
    this->client().link().cancel(stream);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::cancelled);
    ASSERT_TRUE(this->run_until([&] { return this->server().aborted() == 1; }));
}

TYPED_TEST(LinkContract, a_cancelled_stream_is_released_before_the_peer_can_answer) {
    for (const std::size_t size : {500'000U, 1'000U}) {
        SCOPED_TRACE(size);
        this->server().on_opened = [](LinkEnd&, StreamId) {};
        const UnmappableMemory memory(size);
        const std::array regions{port::ConstBytes(memory.bytes())};
        port::MemorySource source(regions);
        const StreamId stream = this->client().send_from(source);
        this->pair_.world.run_for(0s);
        const auto outcome = this->client().outcome(stream);
        ASSERT_EQ(outcome, std::nullopt)
            << "the stream was delivered before the test could cancel it";
        this->client().link().cancel(stream);
        this->pair_.world.run_for(0s);
        EXPECT_EQ(this->client().outcome(stream),
                  size == 1'000 ? SendOutcome::cancelled_late : SendOutcome::cancelled);
        memory.unmap();
        this->settle();
    }
}

TYPED_TEST(LinkContract, a_stream_cancelled_at_once_is_released_without_being_sent) {
    const StreamId stream = this->client().send(pattern(6, 500'000));
    this->client().link().cancel(stream);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::cancelled);
    this->settle();
    EXPECT_TRUE(this->server().opened().empty());
}

TYPED_TEST(LinkContract, a_pending_sink_stops_its_own_stream_only) {
    this->server().on_opened = [](LinkEnd& end, StreamId stream) {
        if (end.opened().size() == 1) end.incoming(stream).sink.allowance = 1000;
        end.receive(stream);
    };
    const auto held = pattern(7, 3'000'000);
    const auto free = pattern(8, 3'000'000);
    this->client().send(held);
    ASSERT_TRUE(this->run_until([&] { return this->server().opened().size() == 1; }));
    this->client().send(free);
    ASSERT_TRUE(this->run_until([&] { return this->server().finished() == 1; }));
    EXPECT_EQ(this->server().incoming(1).sink.bytes, free);
    EXPECT_EQ(this->server().incoming(0).sink.bytes.size(), 1000U);
    this->server().incoming(0).sink.allowance = CollectingSink::kUnlimited;
    this->server().link().wake_sink(this->server().opened()[0]);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->server().incoming(0).sink.bytes, held);
}

TYPED_TEST(LinkContract, a_pending_lane_continues_when_its_sink_is_woken) {
    const auto bytes = pattern(9, 200'000);
    this->server().lane(Lane::rpc).allowance = 10;
    ASSERT_TRUE(this->client().write(Lane::rpc, bytes));
    this->settle();
    EXPECT_EQ(this->server().lane(Lane::rpc).bytes.size(), 10U);
    this->server().lane(Lane::rpc).allowance = CollectingSink::kUnlimited;
    this->server().link().wake_sink(Lane::rpc);
    this->settle();
    EXPECT_EQ(this->server().lane(Lane::rpc).bytes, bytes);
}

TYPED_TEST(LinkContract, a_source_without_bytes_is_asked_again_when_woken) {
    const auto content = pattern(10, 150'000);
    AskedSource source(content, 5000);
    const StreamId stream = this->client().send_from(source, {.prefix = pattern(1, 4)});
    this->settle();
    EXPECT_EQ(this->server().incoming(0).sink.bytes.size(), 5004U);
    source.available = content.size();
    this->client().link().wake_source(stream);
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
    EXPECT_EQ(this->server().incoming(0).sink.bytes.size(), content.size() + 4);
}

TYPED_TEST(LinkContract, a_full_lane_rejects_a_write_and_reports_writable_later) {
    this->server().lane(Lane::eager).allowance = 0;
    const auto bytes = pattern(11, 100'000);
    std::size_t taken = 0;
    while (this->client().write(Lane::eager, bytes)) {
        ++taken;
        ASSERT_LT(taken, 1000U);
    }
    this->settle();
    EXPECT_EQ(this->client().writable, 0U);
    this->server().lane(Lane::eager).allowance = CollectingSink::kUnlimited;
    this->server().link().wake_sink(Lane::eager);
    ASSERT_TRUE(this->run_until([&] { return this->client().writable == 1; }));
    ASSERT_TRUE(this->client().write(Lane::eager, bytes));
    this->settle();
    EXPECT_EQ(this->server().lane(Lane::eager).bytes.size(), (taken + 1) * bytes.size());
}

TYPED_TEST(LinkContract, calls_from_within_a_sink_take_effect) {
    const auto answer = pattern(12, 777);
    CollectingSink& lane = this->server().lane(Lane::control);
    lane.on_write = [&] { this->server().write(Lane::control, answer); };
    ASSERT_TRUE(this->client().write(Lane::control, pattern(13, 5)));
    ASSERT_TRUE(this->run_until(
        [&] { return this->client().lane(Lane::control).bytes.size() >= answer.size(); }));
    lane.on_write = {};
    EXPECT_EQ(this->client().lane(Lane::control).bytes, answer);
}

TYPED_TEST(LinkContract, datagrams_arrive_unless_they_are_too_large) {
    const auto small = pattern(14, 500);
    EXPECT_TRUE(this->client().link().send_datagram(small));
    EXPECT_TRUE(this->client().link().send_datagram({}));
    const auto large = pattern(15, this->client().link().max_datagram() + 1);
    EXPECT_FALSE(this->client().link().send_datagram(large));
    this->settle();
    ASSERT_EQ(this->server().datagrams.size(), 2U);
    EXPECT_EQ(this->server().datagrams[0], small);
}

TYPED_TEST(LinkContract, close_delivers_what_is_enqueued_then_ends_both_sides) {
    const auto content = pattern(16, 2'000'000);
    const auto message = pattern(17, 50'000);
    const StreamId stream = this->client().send(content);
    ASSERT_TRUE(this->client().write(Lane::eager, message));
    this->client().link().close("that was all");
    ASSERT_TRUE(this->run_until([&] { return this->client().down() && this->server().down(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
    EXPECT_EQ(this->server().incoming(0).sink.bytes, content);
    EXPECT_EQ(this->server().lane(Lane::eager).bytes, message);
    EXPECT_EQ(this->server().down()->code(), Errc::link_closed);
    EXPECT_THAT(this->server().down()->cause(), HasSubstr("that was all"));
    EXPECT_EQ(this->client().down()->code(), Errc::link_closed);
}

TYPED_TEST(LinkContract, close_lets_streams_of_the_peer_finish) {
    const auto content = pattern(19, 2'000'000);
    const StreamId stream = this->client().send(content);
    ASSERT_TRUE(this->run_until([&] { return this->server().opened().size() == 1; }));
    this->server().link().close("after you");
    ASSERT_TRUE(this->run_until([&] { return this->client().down() && this->server().down(); }));
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::delivered);
    EXPECT_TRUE(this->server().incoming(0).sink.bytes == content);
}

TYPED_TEST(LinkContract, close_ends_after_the_linger_time) {
    this->server().on_opened = [](LinkEnd&, StreamId) {};
    const StreamId stream = this->client().send(pattern(18, 500'000));
    const TimePoint before = this->pair_.world.now();
    this->client().link().close("no time");
    ASSERT_TRUE(this->run_until([&] { return this->client().down() && this->server().down(); }));
    EXPECT_LT(this->pair_.world.now() - before, 3s);
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::link_lost);
}

TYPED_TEST(LinkContract, streams_beyond_the_limit_wait_until_others_end) {
    this->server().on_opened = [](LinkEnd&, StreamId) {};
    constexpr std::size_t kStreams = 300;
    for (std::uint64_t i = 0; i < kStreams; ++i) this->client().send(pattern(i, 10 + i));
    this->settle();
    EXPECT_EQ(this->server().opened().size(), 256U);
    for (const StreamId stream : this->server().opened()) this->server().receive(stream);
    this->server().on_opened = {};
    ASSERT_TRUE(this->run_until([&] { return this->server().finished() == kStreams; }));
    ASSERT_TRUE(this->run_until([&] { return this->client().all_released(); }));
}

}  // namespace

}  // namespace nexar::testing
