#include "link/sim/datagram_net.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;

TEST(DatagramNet, a_partition_between_two_hosts_leaves_others_alone) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    Side third(pair.net.add_host(sim::DatagramNet::address(3),
                                 QuicPair::endpoint_options(QuicPair::cluster().node(3))));
    pair.net.partition(pair.client_side.host(), pair.server_side.host());
    LinkEnd& other = third.dial(pair.server_side.host().address(),
                                {.cluster = QuicPair::cluster().id(), .node = {}});
    ASSERT_TRUE(pair.run_until([&] { return other.is_up(); }));
    const auto message = pattern(1, 100);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    pair.world.run_for(3s);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
    pair.net.heal(pair.client_side.host(), pair.server_side.host());
    ASSERT_TRUE(pair.run_until([&] { return !pair.server().lane(Lane::rpc).bytes.empty(); }));
    EXPECT_EQ(pair.server().lane(Lane::rpc).bytes, message);
}

TEST(DatagramNet, a_one_way_partition_leaves_the_other_direction_open) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    pair.net.partition(pair.client_side.host(), pair.server_side.host(), sim::Way::one);
    const auto message = pattern(1, 100);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    ASSERT_TRUE(pair.server().write(Lane::rpc, message));
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client().lane(Lane::rpc).bytes, message);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
    pair.net.heal_all();
    ASSERT_TRUE(pair.run_until([&] { return pair.server().lane(Lane::rpc).bytes == message; }));
}

TEST(DatagramNet, a_paused_host_receives_its_datagrams_when_it_resumes) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    pair.net.pause(pair.server_side.host(), pair.world.now() + 5s);
    const auto message = pattern(1, 5000);
    ASSERT_TRUE(pair.client().write(Lane::rpc, message));
    pair.world.run_for(4s);
    EXPECT_TRUE(pair.server().lane(Lane::rpc).bytes.empty());
    pair.world.run_for(1s + 10ms);
    EXPECT_EQ(pair.server().lane(Lane::rpc).bytes, message);
}

TEST(DatagramNet, the_buffer_of_a_paused_host_is_bounded) {
    QuicPair pair({.client = {.handshake_timeout = 1s}});
    pair.server_side.host().inbox_limit = 10'000;
    pair.net.pause(pair.server_side.host(), pair.world.now() + 1s);
    for (std::uint64_t i = 0; i < 20; ++i) {
        pair.net.inject({.from = sim::DatagramNet::address(9),
                         .to = pair.server_side.host().address(),
                         .bytes = pattern(i, 1000)},
                        0s);
    }
    pair.world.run_for(2s);
    EXPECT_EQ(pair.server_side.endpoint().counts().packets_in, 10U);
}

TEST(DatagramNet, a_host_that_is_switched_off_is_silent) {
    QuicPair pair({.client = {.idle_timeout = 3s}});
    ASSERT_TRUE(pair.connect());
    pair.net.remove_host(pair.server_side.host());
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }));
    EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
    EXPECT_FALSE(pair.server().down());
}

TEST(DatagramNet, the_machine_of_a_killed_process_refuses_datagrams_after_a_round_trip) {
    QuicPair pair({.weather = {.delay = 3ms}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    pair.net.kill_process(pair.server_side.host());
    const TimePoint begin = pair.world.now();
    ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 100)));
    ASSERT_TRUE(pair.run_until([&] { return pair.client().refusals != 0; }));
    EXPECT_EQ(pair.world.now() - begin, 6ms);
    EXPECT_TRUE(pair.client().is_up()) << "a refusal is only a hint";
    // Later packets are refused too, and the owner hears of some of them.
    for (int i = 0; i < 100; ++i) {
        pair.client().link().send_datagram(pattern(1, 100));
        pair.world.run_for(1ms);
    }
    EXPECT_GE(pair.client().refusals, 5U);
    EXPECT_LE(pair.client().refusals, 12U);
}

TEST(DatagramNet, refusals_do_not_cross_a_partition) {
    for (const sim::Way way : {sim::Way::both, sim::Way::one}) {
        QuicPair pair;
        ASSERT_TRUE(pair.connect());
        pair.net.partition(pair.server_side.host(), pair.client_side.host(), way);
        pair.net.kill_process(pair.server_side.host());
        ASSERT_TRUE(pair.client().link().send_datagram(pattern(1, 100)));
        pair.world.run_for(1s);
        EXPECT_EQ(pair.client().refusals, 0U);
    }
}

struct Trace {
    std::uint64_t hash = 0;
    std::uint64_t datagrams = 0;
};

Trace datagram_trace_of(std::uint64_t seed) {
    QuicPair pair(
        {.seed = seed, .weather = {.delay = 200us, .jitter = 1ms, .loss = 0.1, .duplicate = 0.1}});
    if (!pair.connect()) return {};
    pair.client().send(pattern(seed, 100'000));
    pair.server().write(Lane::eager, pattern(seed, 5000));
    pair.run_until([&] { return pair.client().all_released(); });
    return {.hash = pair.world.trace_hash(), .datagrams = pair.net.datagrams_sent()};
}

TEST(DatagramNet, the_trace_is_equal_for_equal_seeds_and_differs_for_others) {
    const std::uint64_t first = test_seed(1);
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = first; seed < first + 10; ++seed) {
        const Trace once = datagram_trace_of(seed);
        const Trace again = datagram_trace_of(seed);
        EXPECT_EQ(once.hash, again.hash) << seed;
        EXPECT_EQ(once.datagrams, again.datagrams) << seed;
        hashes.insert(once.hash);
    }
    EXPECT_EQ(hashes.size(), 10U);
}

}  // namespace

}  // namespace nexar::testing
