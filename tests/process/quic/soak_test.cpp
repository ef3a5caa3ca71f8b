// The scenarios that the suite runs in a short form, at full length.

#include "process/quic/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

TEST(QuicSoak, a_transfer_survives_a_network_that_is_down_2_s_out_of_7_s) {
    survives_blackholes({.lasts = seconds(2),
                         .every = seconds(7),
                         .bytes = scaled(4'000'000),
                         .holes = 4,
                         .seed = test_seed(81)});
}

TEST(QuicSoak, a_link_follows_a_port_that_changes_every_5_s) {
    survives_rebinding(
        {.every = seconds(5), .length = seconds(32), .least_changes = 5, .seed = test_seed(82)});
}

TEST(QuicSoak, a_link_follows_an_address_that_changes_every_5_s) {
    survives_rebinding({.every = seconds(5),
                        .address = true,
                        .length = seconds(32),
                        .least_changes = 5,
                        .seed = test_seed(83)});
}

TEST(QuicSoak, ten_megabytes_arrive_with_a_delay_of_750_ms_one_way) {
    Wire wire(both_ways(delays(milliseconds(750))));
    wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 1, .bytes_each = 10'000'000}));
}

TEST(QuicSoak, moves_a_gigabyte_each_way_at_once_in_64_streams_of_ethernet_datagrams) {
    moves_both_ways_without_stall({.bytes_each_way = scaled(kGiB)});
}

TEST(QuicSoak, moves_a_gigabyte_each_way_at_once_in_64_streams_of_the_largest_datagrams) {
    moves_both_ways_without_stall({.bytes_each_way = scaled(kGiB), .datagram_bytes = 65000});
}

TEST(QuicSoak, never_reads_released_memory_again) {
    never_reads_released_memory({.bytes_each_way = scaled(kGiB), .seed = test_seed(84)});
}

TEST(QuicSoak, honest_clients_connect_during_30_s_of_spoofed_initials) {
    withstands_a_flood_of_initials(
        {.length = seconds(30), .handshakes = 20, .seed = test_seed(85)});
}

}  // namespace
}  // namespace nexar::testing
