#include "link/sim/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "sim_pair.hpp"
#include "support/seed.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;
using port::SendOutcome;
using port::StreamId;

// Everything at once, in weather that cuts, delays and reorders: every byte arrives, in order.
TEST(SimLink, carries_lanes_and_streams_through_any_weather) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 200; ++seed) {
        SCOPED_TRACE(seed);
        sim::FabricOptions options;
        options.weather = {.delay = 50us, .jitter = 5ms, .largest_piece = 3000, .cuts = 0.6};
        SimPair pair(seed, options);
        ASSERT_TRUE(pair.connect());
        Random random(seed);
        std::array<std::vector<std::byte>, port::kLanes> written;
        std::vector<std::vector<std::byte>> sent;
        for (int i = 0; i < 40; ++i) {
            LinkEnd& from = pair.client();
            const auto bytes = pattern(seed * 1000 + static_cast<std::uint64_t>(i),
                                       random.below(i % 4 == 0 ? 200'000 : 500));
            if (i % 4 == 0) {
                const auto prefix = pattern(7, 13);
                from.send(bytes, {.prefix = prefix}, 1 + random.below(5));
                auto& whole = sent.emplace_back(prefix);
                whole.insert(whole.end(), bytes.begin(), bytes.end());
            } else {
                const auto lane = static_cast<Lane>(random.below(port::kLanes));
                ASSERT_TRUE(from.write(lane, bytes));
                auto& all = written[static_cast<std::size_t>(lane)];
                all.insert(all.end(), bytes.begin(), bytes.end());
            }
            if (random.chance(0.3)) pair.world.run_for(1ms);
        }
        ASSERT_TRUE(pair.run_until([&] {
            return pair.client().all_released() && pair.server().finished() == sent.size();
        }));
        pair.client().link().close("done");
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }));
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            EXPECT_EQ(pair.server().lane(static_cast<Lane>(i)).bytes, written[i]);
        }
        std::vector<std::vector<std::byte>> received;
        for (std::size_t i = 0; i < sent.size(); ++i) {
            received.push_back(pair.server().incoming(i).sink.bytes);
        }
        EXPECT_TRUE(std::ranges::is_permutation(received, sent));
    }
}

// Each of two lanes is first in some run, and pieces are as small as one byte.
TEST(SimLink, lanes_overtake_each_other_and_bytes_are_cut_anywhere) {
    std::set<std::string> orders;
    std::set<std::size_t> pieces;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        sim::FabricOptions options;
        options.weather = {.delay = 10us, .jitter = 1ms, .largest_piece = 20, .cuts = 0.5};
        SimPair pair(seed, options);
        ASSERT_TRUE(pair.connect());
        std::string order;
        CollectingSink& control = pair.server().lane(Lane::control);
        CollectingSink& eager = pair.server().lane(Lane::eager);
        control.on_write = [&] { order += 'c'; };
        eager.on_write = [&] { order += 'e'; };
        const auto bytes = pattern(seed, 20);
        pair.client().write(Lane::control, bytes);
        pair.client().write(Lane::eager, bytes);
        std::size_t before = 0;
        ASSERT_TRUE(pair.run_until([&] {
            if (control.bytes.size() != before) pieces.insert(control.bytes.size() - before);
            before = control.bytes.size();
            return control.bytes == bytes && eager.bytes == bytes;
        }));
        orders.insert(order.substr(0, 1));
    }
    EXPECT_EQ(orders, (std::set<std::string>{"c", "e"}));
    EXPECT_TRUE(pieces.contains(1) && pieces.contains(20) && pieces.size() > 10);
}

TEST(SimLink, sends_at_the_rate_of_the_weather) {
    sim::FabricOptions options;
    options.weather = {.delay = 1ms, .bytes_per_second = 1'000'000};
    SimPair pair(1, options);
    ASSERT_TRUE(pair.connect());
    const TimePoint begin = pair.world.now();
    pair.client().send(pattern(1, 2'000'000));
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }));
    EXPECT_GE(pair.world.now() - begin, 2001ms);
    EXPECT_LE(pair.world.now() - begin, 2200ms);
}

TEST(SimLink, urgent_streams_go_first_and_leave_the_others_their_share) {
    sim::FabricOptions options;
    options.weather = {.delay = 1ms, .bytes_per_second = 10'000'000, .largest_piece = 8192};
    SimPair pair(1, options);
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(1, 4'000'000), {.priority = port::Priority::bulk});
    pair.client().send(pattern(2, 4'000'000), {.priority = port::Priority::critical});
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }));
    const bool bulk_first = pair.server().incoming(0).sink.bytes[0] == pattern(1, 1)[0];
    Incoming& bulk = pair.server().incoming(bulk_first ? 0U : 1U);
    EXPECT_FALSE(bulk.finished);
    EXPECT_GE(bulk.sink.bytes.size(), 4'000'000U / 25);
    EXPECT_LE(bulk.sink.bytes.size(), 4'000'000U / 10);
}

TEST(SimLink, places_bytes_directly_where_a_sink_offers_memory_and_writes_the_rest) {
    for (const double direct : {0.0, 0.5, 1.0}) {
        sim::FabricOptions options;
        options.direct_placement = direct;
        options.weather.largest_piece = 1000;
        SimPair pair(3, options);
        ASSERT_TRUE(pair.connect());
        const auto content = pattern(1, 100'000);
        std::vector<std::byte> memory(content.size());
        port::MemorySink sink(memory);
        pair.server().on_opened = [&](LinkEnd& end, StreamId stream) {
            end.link().receive(stream, sink);
            end.link().open_window(stream);
        };
        const StreamId stream = pair.client().send(content);
        ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }));
        EXPECT_EQ(pair.client().outcome(stream), SendOutcome::delivered);
        EXPECT_EQ(memory, content);
        // The sink never saw the bytes that were placed directly.
        EXPECT_EQ(sink.taken() != 0, direct < 1);
    }
}

TEST(SimLink, datagrams_are_lost_duplicated_and_reordered_as_the_weather_says) {
    sim::FabricOptions options;
    options.weather = {.datagram_loss = 0.3, .datagram_duplicate = 0.2, .datagram_reorder = 0.3};
    SimPair pair(1, options);
    ASSERT_TRUE(pair.connect());
    std::vector<std::vector<std::byte>> sent;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        sent.push_back(pattern(i, 8));
        ASSERT_TRUE(pair.client().link().send_datagram(sent.back()));
        pair.world.run_for(50us);
    }
    pair.world.run_for(1s);
    std::size_t twice = 0;
    std::size_t lost = 0;
    for (const auto& datagram : sent) {
        const auto copies = std::ranges::count(pair.server().datagrams, datagram);
        lost += copies == 0 ? 1U : 0U;
        twice += copies == 2 ? 1U : 0U;
    }
    EXPECT_NEAR(static_cast<double>(lost), 300, 60);
    EXPECT_NEAR(static_cast<double>(twice), 140, 50);
    const auto place = [&](const auto& datagram) { return std::ranges::find(sent, datagram); };
    EXPECT_FALSE(std::ranges::is_sorted(pair.server().datagrams, {}, place));
}

TEST(SimLink, too_many_datagrams_at_once_are_dropped_by_the_sender) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    std::size_t taken = 0;
    while (pair.client().link().send_datagram(pattern(1, 10))) ++taken;
    EXPECT_EQ(taken, pair.fabric.options().datagram_queue);
    pair.world.run_for(1s);
    EXPECT_EQ(pair.server().datagrams.size(), taken);
}

// A link is down, but its Down was not polled yet: a new send is released before it.
TEST(SimLink, a_send_between_the_end_and_its_down_is_released_before_the_down) {
    sim::World world(1);
    sim::Fabric fabric(world);
    sim::Carrier& a = fabric.add_node(sim::Fabric::identity(1));
    sim::Carrier& b = fabric.add_node(sim::Fabric::identity(2));
    const sim::CarrierLoop other(b);
    const port::LinkId id = a.dial(b.identity().node);
    const auto drive = [&] {
        world.run_for(1ms);
        a.on_ready(world.now());
        a.flush(world.now());
    };
    for (int i = 0; i < 3; ++i) drive();
    const auto up = a.poll_event();
    ASSERT_TRUE(up && std::holds_alternative<port::Up>(up->what));
    fabric.break_link(a, id, 0s);
    drive();
    port::Link& link = *std::get<port::Up>(up->what).link;
    port::MemorySource source({});
    const StreamId stream = link.send(source, {});
    EXPECT_FALSE(link.write(Lane::eager, {}));
    EXPECT_FALSE(link.send_datagram({}));
    const auto released = a.poll_event();
    ASSERT_TRUE(released && std::holds_alternative<port::Released>(released->what));
    EXPECT_EQ(std::get<port::Released>(released->what).stream, stream);
    EXPECT_EQ(std::get<port::Released>(released->what).outcome, SendOutcome::link_lost);
    const auto down = a.poll_event();
    ASSERT_TRUE(down && std::holds_alternative<port::Down>(down->what));
    link.send(source, {});
    EXPECT_FALSE(a.poll_event());
    a.forget(id);
}

// Either side cancels streams at any moment, in any weather: each ends once on both sides (LinkEnd
// asserts it), and delivered streams are complete.
TEST(SimLink, streams_cancelled_at_any_moment_end_once_on_both_sides) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 200; ++seed) {
        SCOPED_TRACE(seed);
        sim::FabricOptions options;
        options.weather = {.delay = 50us, .jitter = 2ms, .largest_piece = 5000, .cuts = 0.3};
        options.max_streams = 8;
        SimPair pair(seed, options);
        ASSERT_TRUE(pair.connect());
        Random random(seed);
        pair.server().on_opened = [&](LinkEnd& end, StreamId stream) {
            if (random.chance(0.7)) end.receive(stream);
            if (random.chance(0.3)) end.link().refuse(stream);
        };
        std::vector<StreamId> streams;
        for (std::uint64_t i = 0; i < 40; ++i) {
            streams.push_back(pair.client().send(pattern(i, random.below(100'000))));
            if (random.chance(0.3)) {
                pair.client().link().cancel(streams[random.below(streams.size())]);
            }
            pair.world.run_for(Duration(static_cast<Duration::rep>(random.below(1'000'000))));
        }
        pair.server().on_opened = {};
        for (const StreamId stream : pair.server().opened()) pair.server().link().refuse(stream);
        const bool done = pair.run_until([&] {
            for (const StreamId stream : pair.server().opened()) {
                const Incoming& in = pair.server().incoming(stream);
                if (!in.finished && !in.aborted) pair.server().link().refuse(stream);
            }
            return pair.client().all_released();
        });
        ASSERT_TRUE(done);
        pair.world.run_for(1s);
        EXPECT_EQ(pair.server().finished() + pair.server().aborted(),
                  pair.server().opened().size());
    }
}

TEST(SimLinkDeathTest, reusing_a_buffer_before_its_release_is_detected) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    auto content = pattern(1, 5000);
    const std::array<port::ConstBytes, 1> regions{port::ConstBytes(content)};
    port::MemorySource source(regions);
    pair.client().send_from(source);
    pair.world.run_for(50us);
    content[4000] ^= std::byte{1};
    EXPECT_DEATH(pair.world.run_for(1s), "changed before it was released");
    content[4000] ^= std::byte{1};
    pair.world.run_for(1s);
    EXPECT_TRUE(pair.client().all_released());
}

TEST(SimLinkDeathTest, a_message_larger_than_a_lane_is_detected) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    const auto large = pattern(1, pair.fabric.options().lane_queue + 1);
    EXPECT_DEATH(pair.client().write(Lane::eager, large), "never fits");
}

}  // namespace

}  // namespace nexar::testing
