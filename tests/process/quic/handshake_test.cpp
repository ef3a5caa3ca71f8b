// Handshakes on a bad network: loss, corruption, delay, strangers, and peers that must be refused.

#include <gmock/gmock.h>

#include "process/quic/wire.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using ::testing::HasSubstr;

/// Makes connections in sequence, each closed before the next.
struct Made {
    std::size_t first_time = 0;
    std::size_t second_time = 0;
};

/// Dials, waits until the link is up or down, and closes it; returns true if it was up.
bool connects(Wire& wire) {
    const auto& story = wire.client.story(wire.dial());
    wire.driver.run_until([&] { return story.came_up || story.down; },
                          patience(std::chrono::seconds(15)));
    if (!story.came_up) return false;
    story.link->close("next");
    wire.driver.run_until([&] { return story.down.has_value(); },
                          patience(std::chrono::seconds(10)));
    return true;
}

Made make_connections(Wire& wire, std::size_t wanted) {
    Made made;
    for (std::size_t i = 0; i < wanted; ++i) {
        if (connects(wire)) {
            ++made.first_time;
        } else if (connects(wire)) {
            ++made.second_time;
        } else {
            ADD_FAILURE() << "connection " << i << ": " << wire.driver.describe();
        }
    }
    return made;
}

TEST(QuicHandshake, all_of_50_complete_with_30_percent_loss_both_ways) {
    Wire wire(both_ways(loses(0.3, 3), test_seed(31)));
    EXPECT_EQ(make_connections(wire, 50).first_time, 50U) << wire.driver.describe();
    EXPECT_GT(wire.traffic(kToServer).dropped, 20U);
    EXPECT_GT(wire.traffic(kToClient).dropped, 20U);
}

TEST(QuicHandshake, completes_with_30_percent_of_packets_corrupted) {
    Wire wire(both_ways(corrupts(0.3), test_seed(32)));
    // Unlike the losses above, the number of consecutive corruptions is unbounded; after eight of
    // them a dialer gives up.
    const Made made = make_connections(wire, 20);
    EXPECT_EQ(made.first_time + made.second_time, 20U);
    EXPECT_LE(made.second_time, 2U) << wire.driver.describe();
    EXPECT_GT(wire.traffic(kToServer).corrupted, 10U);
    EXPECT_GT(wire.traffic(kToClient).corrupted, 10U);
}

TEST(QuicHandshake, completes_with_a_delay_of_750_ms_one_way) {
    using std::chrono::milliseconds;
    Wire wire(both_ways(delays(milliseconds(750))));
    const port::LinkId link = wire.connect();
    EXPECT_GE(wire.client.connection(link).statistics().round_trip, milliseconds(1500));
}

TEST(QuicHandshake, a_server_sends_at_most_three_times_what_an_unproven_address_sent) {
    // Everything after the client's first packet is dropped: its address is never proven.
    WireOptions options;
    options.to_server.blackhole = {
        .after = Duration(1), .lasts = std::chrono::hours(1), .every = {}};
    Wire wire(options);
    wire.dial();
    ASSERT_TRUE(wire.driver.run_until([&] { return !wire.server.refused().empty(); },
                                      patience(std::chrono::seconds(20))))
        << wire.driver.describe();
    const std::uint64_t arrived = wire.traffic(kToServer).delivered;
    ASSERT_GE(arrived, 1U);
    ASSERT_LE(arrived, wire.client_out.first_sizes.size());
    std::uint64_t bytes_in = 0;
    for (std::size_t i = 0; i < arrived; ++i) bytes_in += wire.client_out.first_sizes[i];
    EXPECT_GT(wire.server_out.bytes, 0U);
    EXPECT_LE(wire.server_out.bytes, 3 * bytes_in);
    EXPECT_GT(wire.traffic(kToServer).blackholed, 3U) << "the client did not retry";
}

TEST(QuicHandshake, completes_after_a_retry_even_with_loss) {
    WireOptions options = both_ways(loses(0.1), test_seed(33));
    options.gate.half_open_before_retry = 0;
    Wire wire(options);
    EXPECT_EQ(make_connections(wire, 20).first_time, 20U) << wire.driver.describe();
    EXPECT_GE(wire.server.endpoint().counts().retries, 20U);
    EXPECT_EQ(wire.server.endpoint().counts().bad_tokens, 0U);
}

TEST(QuicHandshake, a_dialer_with_a_foreign_ca_is_refused_and_both_sides_learn_why) {
    Wire wire;
    quic::EndpointOptions options = node_options(wire.cluster, 7);
    options.credentials = wire.cluster.flawed(Flaw::foreign_ca);
    Station stranger(loopback(), wire.pool, std::move(options));
    wire.driver.add(stranger);
    const port::LinkId link =
        stranger.dial(wire.entrance(), {.cluster = wire.cluster.id(), .node = {}});
    ASSERT_TRUE(wire.driver.run_until(
        [&] { return stranger.story(link).down && !wire.server.refused().empty(); },
        patience(std::chrono::seconds(20))))
        << wire.driver.describe();
    EXPECT_FALSE(stranger.story(link).came_up);
    EXPECT_EQ(stranger.story(link).down->code(), Errc::unauthenticated);
    EXPECT_EQ(wire.server.refused()[0].reason.code(), Errc::unauthenticated);
    EXPECT_EQ(wire.server.came_up(), 0U);
    EXPECT_EQ(wire.server.endpoint().half_open(), 0U);
    EXPECT_THAT(stranger.story(link).down->what(),
                HasSubstr("your certificate was not issued by the CA"));
    EXPECT_THAT(wire.server.refused()[0].reason.what(), HasSubstr("was not issued by the CA"));
    wire.driver.remove(stranger);
}

}  // namespace
}  // namespace nexar::testing
