#include "link/sim/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "sim_pair.hpp"
#include "support/seed.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;
using port::SendOutcome;
using port::StreamId;

bool is_prefix(const std::vector<std::byte>& part, const std::vector<std::byte>& whole) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// A link with messages and streams in flight in one direction.
class BusyPair : public SimPair {
public:
    BusyPair(std::uint64_t seed, const sim::FabricOptions& options) : SimPair(seed, options) {
        if (!connect()) return;
        for (std::uint64_t i = 0; i < 3; ++i) {
            written.push_back(pattern(seed + i, 20'000 + 1000 * i));
            client().write(static_cast<Lane>(i), written.back());
        }
        for (std::uint64_t i = 0; i < 5; ++i) {
            sent.push_back(pattern(seed + 100 + i, 40'000 + 1000 * i));
            streams.push_back(client().send(sent.back()));
        }
    }
    // The bytes that arrived on each lane and stream are a prefix of those sent.
    void expect_prefixes() {
        for (std::size_t i = 0; i < written.size(); ++i) {
            EXPECT_TRUE(is_prefix(server().lane(static_cast<Lane>(i)).bytes, written[i]));
        }
        for (std::size_t i = 0; i < server().opened().size(); ++i) {
            const auto& got = server().incoming(i).sink.bytes;
            EXPECT_TRUE(std::ranges::any_of(
                sent, [&](const auto& whole) { return is_prefix(got, whole); }));
        }
    }
    std::uint64_t arrived() {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < 3; ++i)
            bytes += server().lane(static_cast<Lane>(i)).bytes.size();
        for (std::size_t i = 0; i < server().opened().size(); ++i) {
            bytes += server().incoming(i).sink.bytes.size();
        }
        return bytes;
    }

    std::vector<std::vector<std::byte>> written;
    std::vector<std::vector<std::byte>> sent;
    std::vector<StreamId> streams;
};

sim::FabricOptions rough() {
    sim::FabricOptions options;
    options.weather = {.delay = 100us, .jitter = 2ms, .largest_piece = 4000, .cuts = 0.5};
    return options;
}

TEST(Fabric, a_link_breaks_after_any_prefix_of_each_lane_and_stream) {
    const std::uint64_t first = test_seed(1);
    std::set<std::uint64_t> arrived;
    std::size_t apart = 0;
    for (std::uint64_t seed = first; seed < first + 300; ++seed) {
        SCOPED_TRACE(seed);
        BusyPair pair(seed, rough());
        pair.world.run_for(Duration(static_cast<Duration::rep>(Random(seed).below(2'500'000))));
        const port::LinkId link = pair.client().link().id();
        pair.fabric.break_link(pair.a, link);
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() || pair.server().down(); }));
        apart += pair.client().down().has_value() != pair.server().down().has_value() ? 1U : 0U;
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }));
        EXPECT_EQ(pair.client().down()->code(), Errc::link_closed);
        EXPECT_TRUE(pair.client().all_released());
        pair.expect_prefixes();
        arrived.insert(pair.arrived());
        // Streams reported as delivered have arrived.
        std::size_t delivered = 0;
        for (const StreamId stream : pair.streams) {
            delivered += pair.client().outcome(stream) == SendOutcome::delivered ? 1U : 0U;
        }
        EXPECT_LE(delivered, pair.server().finished());
    }
    EXPECT_GT(arrived.size(), 150U) << "links must break at many places";
    EXPECT_GT(apart, 250U) << "the two ends must notice at different times";
}

TEST(Fabric, streams_may_be_cancelled_on_a_link_that_just_broke) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 100; ++seed) {
        SCOPED_TRACE(seed);
        BusyPair pair(seed, rough());
        pair.world.run_for(Duration(static_cast<Duration::rep>(Random(seed).below(2'500'000))));
        pair.fabric.break_link(pair.a, pair.client().link().id());
        for (const StreamId stream : pair.streams) pair.client().link().cancel(stream);
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }));
        EXPECT_TRUE(pair.client().all_released());
        pair.expect_prefixes();
    }
}

TEST(Fabric, a_link_breaks_after_exactly_the_given_number_of_bytes) {
    for (const std::uint64_t bytes : {1U, 777U, 50'000U, 100'001U}) {
        sim::FabricOptions options = rough();
        SimPair pair(bytes, options);
        ASSERT_TRUE(pair.connect());
        const sim::Link& link = *pair.a.find(pair.client().link().id());
        pair.fabric.break_link_after(pair.a, link.id(), bytes);
        ASSERT_TRUE(pair.client().write(Lane::eager, pattern(1, 200'000)));
        std::uint64_t sent = 0;
        ASSERT_TRUE(pair.run_until([&] {
            if (!pair.client().down()) sent = link.bytes_sent();
            return pair.client().down() && pair.server().down();
        }));
        EXPECT_EQ(sent, bytes);
        EXPECT_LE(pair.server().lane(Lane::eager).bytes.size(), bytes);
    }
}

TEST(Fabric, a_partition_holds_bytes_until_it_heals_and_loses_datagrams) {
    SimPair pair(1, rough());
    ASSERT_TRUE(pair.connect());
    pair.fabric.partition(pair.a.identity().node, pair.b.identity().node);
    const auto message = pattern(1, 5000);
    const auto content = pattern(2, 20'000);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    const StreamId stream = pair.client().send(content);
    ASSERT_TRUE(pair.client().link().send_datagram(pattern(3, 10)));
    pair.world.run_for(10s);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
    EXPECT_TRUE(pair.server().opened().empty());
    pair.fabric.heal(pair.a.identity().node, pair.b.identity().node);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
    EXPECT_EQ(pair.server().lane(Lane::rpc).bytes, message);
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
    EXPECT_TRUE(pair.server().datagrams.empty());
    ASSERT_TRUE(pair.client().link().send_datagram(pattern(4, 10)));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.server().datagrams.size(), 1U);
}

TEST(Fabric, a_one_way_partition_leaves_the_other_direction_open) {
    SimPair pair(1, rough());
    ASSERT_TRUE(pair.connect());
    pair.fabric.partition(pair.a.identity().node, pair.b.identity().node, sim::Way::one);
    const auto message = pattern(1, 500);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    ASSERT_TRUE(pair.server().write(Lane::rpc, message));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().lane(Lane::rpc).bytes, message);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
}

TEST(Fabric, the_deaf_side_gives_up_after_the_idle_timeout_and_then_the_other_does) {
    sim::FabricOptions options;
    options.idle_timeout = 4s;
    SimPair pair(1, options);
    ASSERT_TRUE(pair.connect());
    const TimePoint begin = pair.world.now();
    pair.client().send(pattern(1, 1000));
    pair.fabric.partition(pair.a.identity().node, pair.b.identity().node, sim::Way::one);
    ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }));
    EXPECT_EQ(pair.world.now(), begin + 4s);
    EXPECT_EQ(pair.server().down()->code(), Errc::timed_out);
    EXPECT_FALSE(pair.client().down());
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }));
    EXPECT_EQ(pair.world.now(), begin + 8s);
    EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
    EXPECT_TRUE(pair.client().all_released());
}

TEST(Fabric, peers_notice_a_killed_node_within_the_detection_time) {
    for (std::uint64_t seed = 1; seed < 50; ++seed) {
        SCOPED_TRACE(seed);
        BusyPair pair(seed, rough());
        pair.world.run_for(1ms);
        const TimePoint begin = pair.world.now();
        pair.fabric.kill(pair.a, 50ms);
        ASSERT_TRUE(pair.run_until([&] { return pair.server().down().has_value(); }));
        EXPECT_LE(pair.world.now() - begin, 50ms);
        EXPECT_EQ(pair.server().down()->code(), Errc::link_closed);
        EXPECT_FALSE(pair.client().down()) << "a dead node gets no events";
        EXPECT_EQ(pair.client().released(), 0U);
        pair.expect_prefixes();
        pair.world.run_for(60s);
        EXPECT_FALSE(pair.client().down());
    }
}

TEST(Fabric, without_detection_the_idle_timeout_ends_links_to_a_killed_node) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    const TimePoint begin = pair.world.now();
    pair.fabric.kill(pair.b, std::nullopt);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }));
    EXPECT_EQ(pair.world.now() - begin, pair.fabric.options().idle_timeout);
    EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
}

TEST(Fabric, a_killed_node_refuses_datagrams_after_a_round_trip_if_asked_to) {
    for (const bool refuses : {true, false}) {
        SimPair pair(1, {.weather = {.delay = 2ms}, .killed_nodes_refuse = refuses});
        ASSERT_TRUE(pair.connect());
        ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 10)));
        pair.world.run_for(1s);
        EXPECT_EQ(pair.client().refusals, 0U);
        pair.fabric.kill(pair.b, std::nullopt);
        pair.world.run_for(1s);
        EXPECT_EQ(pair.client().refusals, 0U) << "nothing was sent";
        const TimePoint begin = pair.world.now();
        for (int i = 0; i < 50; ++i) {
            ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 10)));
        }
        pair.run_until([&] { return pair.client().refusals != 0; }, 100ms);
        EXPECT_EQ(pair.client().refusals, refuses ? 1U : 0U);
        if (refuses) {
            EXPECT_EQ(pair.world.now() - begin, 4ms);
        }
        pair.world.run_for(100ms);
        EXPECT_EQ(pair.client().refusals, refuses ? 1U : 0U) << "one for all of them";
        EXPECT_TRUE(pair.client().is_up());
        pair.fabric.partition(pair.b.identity().node, pair.a.identity().node, sim::Way::one);
        ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 10)));
        pair.world.run_for(100ms);
        EXPECT_EQ(pair.client().refusals, refuses ? 1U : 0U) << "the refusal is cut off";
    }
}

TEST(Fabric, a_node_comes_back_with_a_higher_incarnation) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    pair.fabric.kill(pair.b, 1ms);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }));
    CarrierSide again(pair.fabric.add_node(sim::Fabric::identity(2, 2)));
    ASSERT_TRUE(pair.connect_to(again));
    EXPECT_EQ(pair.client().link().peer().incarnation, Incarnation(2));
}

TEST(Fabric, dialing_an_absent_node_ends_with_down_as_the_first_event) {
    SimPair pair;
    LinkEnd& end = pair.client_side.dialed(pair.a.dial(sim::Fabric::identity(99).node));
    const TimePoint begin = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return end.down().has_value(); }));
    EXPECT_EQ(pair.world.now() - begin, pair.fabric.options().handshake_timeout);
    EXPECT_EQ(end.down()->code(), Errc::timed_out);
    EXPECT_FALSE(end.was_up());
}

TEST(Fabric, a_dialer_refused_by_the_gate_learns_why) {
    SimPair pair;
    pair.b.gate = [](const Identity&) { return Error(Errc::unauthenticated, "not in the view"); };
    LinkEnd& end = pair.dial();
    ASSERT_TRUE(pair.run_until([&] { return end.down().has_value(); }));
    EXPECT_EQ(end.down()->code(), Errc::unauthenticated);
    EXPECT_THAT(end.down()->cause(), ::testing::HasSubstr("not in the view"));
    ASSERT_EQ(pair.server_side.refused().size(), 1U);
    EXPECT_EQ(pair.server_side.accepted_count(), 0U);
}

TEST(Fabric, a_handshake_cut_in_the_middle_is_refused_on_one_side_and_times_out_on_the_other) {
    SimPair pair;
    LinkEnd& end = pair.dial();
    pair.world.after(
        150us, [&] { pair.fabric.partition(pair.a.identity().node, pair.b.identity().node); });
    ASSERT_TRUE(pair.run_until([&] { return end.down().has_value(); }));
    EXPECT_EQ(end.down()->code(), Errc::timed_out);
    EXPECT_EQ(pair.server_side.refused().size(), 1U);
}

TEST(Fabric, a_paused_node_receives_what_arrived_when_it_resumes) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.pause(pair.server_side.actor(), pair.world.now() + 5s);
    const auto message = pattern(1, 5000);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    const StreamId stream = pair.client().send(pattern(2, 100));
    pair.world.run_for(4s);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
    EXPECT_FALSE(pair.client().outcome(stream)) << "a stopped process acknowledges nothing";
    pair.world.run_for(2s);
    EXPECT_EQ(pair.server().lane(Lane::rpc).bytes, message);
    EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
}

TEST(Fabric, links_that_are_down_on_both_sides_are_freed) {
    SimPair pair;
    for (int i = 0; i < 100; ++i) {
        LinkEnd& end = pair.dial();
        ASSERT_TRUE(pair.run_until([&] { return end.is_up(); }));
        end.link().close("next");
        ASSERT_TRUE(pair.run_until([&] { return end.down().has_value(); }));
    }
    pair.world.run_for(1s);
    pair.a.flush(pair.world.now());
    EXPECT_EQ(pair.fabric.links(), 0U);
}

std::uint64_t trace_of(std::uint64_t seed) {
    sim::FabricOptions options = rough();
    options.weather.datagram_loss = 0.2;
    options.weather.datagram_duplicate = 0.2;
    options.weather.datagram_reorder = 0.2;
    BusyPair pair(seed, options);
    for (int i = 0; i < 20; ++i) pair.client().link().send_datagram(pattern(7, 100));
    pair.world.run_for(2ms);
    pair.fabric.break_link(pair.a, pair.client().link().id());
    pair.world.run_for(1s);
    return pair.world.trace_hash();
}

TEST(Fabric, the_trace_is_equal_for_equal_seeds_and_differs_for_others) {
    const std::uint64_t first = test_seed(1);
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
        const std::uint64_t hash = trace_of(seed);
        EXPECT_EQ(hash, trace_of(seed)) << seed;
        hashes.insert(hash);
    }
    EXPECT_EQ(hashes.size(), 20U);
}

}  // namespace

}  // namespace nexar::testing
