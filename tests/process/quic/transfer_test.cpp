// Transfers on a bad network, checked by hash.

#include <array>

#include "process/quic/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(QuicTransfer, arrives_intact_with_2_percent_loss_both_ways) {
    Wire wire(both_ways(loses(0.02), test_seed(51)));
    wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 8, .bytes_each = scaled(4'000'000), .both_ways = true}));
    EXPECT_GT(wire.traffic(kToServer).dropped, 10U);
    EXPECT_GT(wire.traffic(kToClient).dropped, 10U);
}

TEST(QuicTransfer, arrives_intact_with_2_percent_of_packets_corrupted) {
    Wire wire(both_ways(corrupts(0.02), test_seed(52)));
    wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 8, .bytes_each = scaled(4'000'000), .both_ways = true}));
    EXPECT_GT(wire.traffic(kToServer).corrupted, 10U);
    EXPECT_GT(wire.traffic(kToClient).corrupted, 10U);
}

TEST(QuicTransfer, arrives_intact_with_all_faults_at_once) {
    udp_fault::FaultOptions faults = loses(0.01);
    faults.burst = {.start = 0.002, .shortest = 2, .longest = 8};
    faults.duplicate = 0.02;
    faults.reorder = {.probability = 0.05, .packets = 8, .at_most = milliseconds(5)};
    faults.corrupt = {.probability = 0.01, .bits = 5};
    faults.truncate = 0.01;
    faults.delay = milliseconds(1);
    faults.jitter = milliseconds(2);
    Wire wire(both_ways(faults, test_seed(53)));
    wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 8, .bytes_each = scaled(500'000), .both_ways = true}));
}

TEST(QuicTransfer, a_megabyte_arrives_with_a_delay_of_750_ms_one_way) {
    Wire wire(both_ways(delays(milliseconds(750))));
    wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 1, .bytes_each = scaled(1'000'000)}));
}

TEST(QuicTransfer, keys_are_updated_in_the_middle_by_either_side) {
    Wire wire(both_ways(loses(0.005), test_seed(54)));
    wire.connect();
    const std::uint64_t all = 16 * scaled(4'000'000);
    const auto derived = [](Station& side) {
        return side.connection(side.link()->id()).statistics().key_updates;
    };
    // Keys are derived one update ahead.
    const std::array<std::uint64_t, 2> before{derived(wire.client), derived(wire.server)};
    const auto updates_of = [&](Station& side) {
        return derived(side) - before[&side == &wire.client ? 0 : 1];
    };
    std::uint64_t updated = 0;
    const auto update = [&] {
        if (updated == 6 || wire.server.received_bytes() < (updated + 1) * all / 8) return;
        // Two simultaneous updates would become one, so the peer must have followed the last one.
        if (updates_of(wire.client) != updated || updates_of(wire.server) != updated) return;
        Station& side = updated % 2 == 0 ? wire.client : wire.server;
        // ngtcp2 refuses an update until the last one was acknowledged (RFC 9001 6.1): retry in the
        // next turn.
        if (side.connection(side.link()->id()).update_keys(wire.driver.now())) ++updated;
    };
    EXPECT_TRUE(
        wire.transfers({.streams = 16, .bytes_each = scaled(4'000'000), .meanwhile = update}));
    EXPECT_GE(updated, 3U);
    EXPECT_TRUE(wire.driver.run_until(
        [&] { return updates_of(wire.client) == updated && updates_of(wire.server) == updated; },
        patience(seconds(5))))
        << updates_of(wire.client) << " and " << updates_of(wire.server) << " of " << updated;
}

TEST(QuicTransfer, works_on_a_path_with_an_mtu_of_1300_bytes) {
    udp_fault::FaultOptions narrow;
    narrow.largest = 1300;
    Wire wire(both_ways(narrow));
    const port::LinkId link = wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 4, .bytes_each = scaled(4'000'000), .both_ways = true}));
    const std::size_t found = wire.client.connection(link).statistics().datagram_bytes;
    EXPECT_TRUE(found == 1280 || found == 1200) << found;
    EXPECT_GT(wire.traffic(kToServer).oversized, 0U) << "no larger datagram was tried";
}

TEST(QuicTransfer, continues_when_the_mtu_shrinks_in_the_middle) {
    Wire wire;
    const port::LinkId link = wire.connect();
    ASSERT_TRUE(wire.driver.run_until(
        [&] { return wire.client.connection(link).statistics().datagram_bytes == 1452; },
        patience(seconds(20))));
    bool narrow = false;
    const std::uint64_t each = scaled(4'000'000);
    udp_fault::FaultOptions faults;
    faults.largest = 1300;
    const auto make_narrow = [&] {
        if (narrow || wire.server.received_bytes() < each) return;
        narrow =
            wire.proxy.set_faults(kToServer, faults) && wire.proxy.set_faults(kToClient, faults);
    };
    const bool arrived = wire.transfers({.streams = 4,
                                         .bytes_each = each,
                                         .both_ways = true,
                                         .within = patience(seconds(25)),
                                         .meanwhile = make_narrow});
    EXPECT_TRUE(arrived) << wire.driver.describe();
    EXPECT_TRUE(narrow);
    EXPECT_GT(wire.traffic(kToServer).oversized, 0U);
}

}  // namespace
}  // namespace nexar::testing
