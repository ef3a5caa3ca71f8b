#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "port/memory.hpp"
#include "support/quic_pair.hpp"
#include "support/shm_pair.hpp"
#include "support/unmappable_memory.hpp"
#include "unit/link/sim/sim_pair.hpp"

/// What Link::drop() promises, for every kind of link.
namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;
using port::SendOutcome;
using port::StreamId;
using ::testing::HasSubstr;

template <class Pair>
class DropContract : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(pair_.connect()); }
    LinkEnd& client() { return pair_.client(); }
    LinkEnd& server() { return pair_.server(); }
    bool run_until(const std::function<bool()>& done) { return pair_.run_until(done); }

    /// Streams and lane bytes of both sides are in flight, none of them complete.
    void fill_both_directions() {
        for (LinkEnd* end : {&client(), &server()}) {
            end->on_opened = [](LinkEnd& here, StreamId stream) {
                here.incoming(stream).sink.allowance = 100'000;
                here.receive(stream);
            };
            end->lane(Lane::rpc).allowance = 500;
        }
        for (std::uint64_t i = 0; i < 4; ++i) {
            client().send(pattern(i, 3'000'000), {.prefix = pattern(i, 40)}, 3);
            server().send(pattern(10 + i, 3'000'000), {.prefix = pattern(i, 40)}, 3);
        }
        ASSERT_TRUE(client().write(Lane::rpc, pattern(20, 50'000)));
        ASSERT_TRUE(server().write(Lane::rpc, pattern(21, 50'000)));
        const auto under_way = [](LinkEnd& end) {
            return end.opened().size() == 4 && end.lane(Lane::rpc).bytes.size() == 500 &&
                   end.incoming(3).sink.bytes.size() > 1'000;
        };
        ASSERT_TRUE(run_until([&] { return under_way(client()) && under_way(server()); }));
        ASSERT_EQ(client().released() + server().released(), 0U);
    }
    /// All bytes that the sinks of one side have taken.
    static std::size_t taken(LinkEnd& end) {
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            bytes += end.lane(static_cast<Lane>(i)).bytes.size();
        }
        for (std::size_t i = 0; i < end.opened().size(); ++i) {
            bytes += end.incoming(i).sink.bytes.size();
        }
        return bytes;
    }
    static bool has_bytes(const std::array<port::LaneBytes, port::kLanes>& lanes) {
        return std::ranges::any_of(lanes, [](const auto& lane) { return !lane.bytes.empty(); });
    }

    Pair pair_;
};

using DropKinds = ::testing::Types<SimPair, QuicPair, ShmPair>;
TYPED_TEST_SUITE(DropContract, DropKinds);

TYPED_TEST(DropContract, drop_ends_a_link_with_streams_in_flight_in_both_directions) {
    ASSERT_NO_FATAL_FAILURE(this->fill_both_directions());
    const UnmappableMemory memory(2'000'000);
    const std::array regions{port::ConstBytes(memory.bytes())};
    port::MemorySource source(regions);
    const StreamId stream = this->client().send_from(source);
    this->pair_.world.run_for(0s);

    const std::size_t before = this->taken(this->client());
    const TimePoint begin = this->pair_.world.now();
    this->client().link().drop("you are not a member any more");
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(this->client().down().has_value());
    EXPECT_EQ(this->pair_.world.now(), begin);
    EXPECT_EQ(this->client().down()->code(), Errc::link_closed);
    EXPECT_EQ(this->client().outcome(stream), SendOutcome::link_lost);
    EXPECT_TRUE(this->client().all_released());
    memory.unmap();
    EXPECT_TRUE(this->client().rests().empty());
    EXPECT_FALSE(this->has_bytes(this->client().untaken));
    EXPECT_FALSE(this->has_bytes(this->client().unconfirmed));

    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    EXPECT_LT(this->pair_.world.now() - begin, 100ms) << "the peer learns it at once";
    EXPECT_EQ(this->server().down()->code(), Errc::link_closed);
    EXPECT_THAT(this->server().down()->cause(), HasSubstr("you are not a member any more"));
    this->pair_.world.run_for(5s);
    EXPECT_EQ(this->taken(this->client()), before);
}

TYPED_TEST(DropContract, drop_does_not_wait_for_a_stopped_peer_and_gets_nothing_from_it_later) {
    ASSERT_NO_FATAL_FAILURE(this->fill_both_directions());
    this->pair_.world.pause(this->pair_.server_side.actor(), this->pair_.world.now() + 10s);
    this->pair_.world.run_for(1s);
    const std::size_t before = this->taken(this->client());
    const TimePoint begin = this->pair_.world.now();
    this->client().link().drop("stopped");
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(this->client().down().has_value());
    EXPECT_EQ(this->pair_.world.now(), begin);

    // The peer writes everything it can before it learns of the end.
    ASSERT_TRUE(this->server().write(Lane::eager, pattern(1, 40'000)));
    this->server().send(pattern(2, 40'000));
    this->server().link().send_datagram(pattern(3, 100));
    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    EXPECT_LT(this->pair_.world.now() - begin, 10s);
    EXPECT_EQ(this->taken(this->client()), before);
    EXPECT_TRUE(this->client().datagrams.empty());
}

TYPED_TEST(DropContract, drop_ends_a_link_that_is_being_closed) {
    ASSERT_NO_FATAL_FAILURE(this->fill_both_directions());
    this->client().link().close("done");
    this->pair_.world.run_for(1ms);
    ASSERT_FALSE(this->client().down().has_value());
    this->client().link().drop("now");
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(this->client().down().has_value());
    EXPECT_FALSE(this->has_bytes(this->client().unconfirmed));
}

TYPED_TEST(DropContract, calls_after_drop_do_nothing) {
    ASSERT_NO_FATAL_FAILURE(this->fill_both_directions());
    port::Link& link = this->client().link();
    link.drop("first");
    link.drop("second");
    link.close("third");
    const StreamId late = this->client().send(pattern(5, 1'000));
    EXPECT_FALSE(this->client().write(Lane::control, pattern(6, 10)));
    EXPECT_FALSE(link.send_datagram(pattern(7, 10)));
    for (std::size_t i = 0; i < port::kLanes; ++i) link.wake_sink(static_cast<Lane>(i));
    for (const StreamId stream : this->client().opened()) {
        link.wake_sink(stream);
        link.open_window(stream);
        link.refuse(stream);
    }
    link.cancel(late);
    link.wake_source(late);
    link.nudge();
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(this->client().down().has_value());
    EXPECT_EQ(this->client().outcome(late), SendOutcome::link_lost);
    EXPECT_EQ(this->client().aborted(), 0U);
    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    EXPECT_THAT(this->server().down()->cause(), HasSubstr("first"));
}

TYPED_TEST(DropContract, a_sink_that_drops_its_link_is_the_last_one_that_is_used) {
    std::size_t writes = 0;
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        this->server().lane(static_cast<Lane>(i)).on_write = [&] {
            if (writes++ == 3) this->server().link().drop("enough");
        };
    }
    for (std::uint64_t i = 0; i < 60; ++i) {
        ASSERT_TRUE(this->client().write(static_cast<Lane>(i % 3), pattern(i, 20'000)));
    }
    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    this->pair_.world.run_for(1s);
    EXPECT_EQ(writes, 4U);
    EXPECT_TRUE(this->client().down().has_value());
}

TYPED_TEST(DropContract, a_pending_sink_that_is_woken_may_drop_its_link) {
    std::size_t writes = 0;
    for (const Lane lane : {Lane::eager, Lane::rpc}) this->server().lane(lane).allowance = 0;
    ASSERT_TRUE(this->client().write(Lane::eager, pattern(1, 300'000)));
    ASSERT_TRUE(this->client().write(Lane::rpc, pattern(2, 300'000)));
    this->pair_.world.run_for(500ms);
    for (const Lane lane : {Lane::eager, Lane::rpc}) {
        CollectingSink& sink = this->server().lane(lane);
        sink.allowance = CollectingSink::kUnlimited;
        sink.on_write = [&] {
            ++writes;
            this->server().link().drop("enough");
        };
        this->server().link().wake_sink(lane);
    }
    ASSERT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
    EXPECT_EQ(writes, 1U);
}

/// Calls a function whenever the link asks for bytes.
class CallingSource final : public port::Source {
public:
    explicit CallingSource(std::function<void()> on_fill) : on_fill_(std::move(on_fill)) {}
    std::uint64_t size() const noexcept override { return 1'000'000; }
    std::span<const port::ConstBytes> regions() const noexcept override { return {}; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes out) noexcept override {
        on_fill_();
        std::ranges::fill(out, std::byte{7});
        return out.size();
    }

private:
    std::function<void()> on_fill_;
};

TYPED_TEST(DropContract, a_source_that_drops_its_link_is_the_last_one_that_is_used) {
    std::size_t fills = 0;
    const auto drop = [&] {
        ++fills;
        this->client().link().drop("enough");
    };
    CallingSource first(drop);
    CallingSource second(drop);
    const StreamId a = this->client().send_from(first);
    const StreamId b = this->client().send_from(second);
    ASSERT_TRUE(this->run_until([&] { return this->client().down().has_value(); }));
    EXPECT_EQ(fills, 1U);
    EXPECT_EQ(this->client().outcome(a), SendOutcome::link_lost);
    EXPECT_EQ(this->client().outcome(b), SendOutcome::link_lost);
    EXPECT_TRUE(this->run_until([&] { return this->server().down().has_value(); }));
}

TYPED_TEST(DropContract, a_new_link_to_the_same_peer_knows_nothing_of_a_dropped_one) {
    ASSERT_NO_FATAL_FAILURE(this->fill_both_directions());
    this->client().link().drop("again");
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(this->client().down().has_value());
    LinkEnd& fresh = this->pair_.dial();
    ASSERT_TRUE(this->run_until(
        [&] { return fresh.is_up() && this->pair_.server_side.accepted_count() == 2; }));
    LinkEnd& there = this->pair_.server_side.accepted(1);
    const auto bytes = pattern(30, 70'000);
    ASSERT_TRUE(fresh.write(Lane::rpc, bytes));
    ASSERT_TRUE(there.write(Lane::rpc, bytes));
    ASSERT_TRUE(this->run_until([&] {
        return fresh.lane(Lane::rpc).bytes.size() == bytes.size() &&
               there.lane(Lane::rpc).bytes.size() == bytes.size();
    }));
    EXPECT_EQ(fresh.lane(Lane::rpc).bytes, bytes);
    EXPECT_EQ(there.lane(Lane::rpc).bytes, bytes);
    EXPECT_TRUE(fresh.opened().empty() && there.opened().empty());
}

}  // namespace

}  // namespace nexar::testing
