#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"
#include "unit/base/log_capture.hpp"

// Key updates, and packets changed in flight.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::AskedSource;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;

class KeyUpdate : public ::testing::TestWithParam<Protection> {
protected:
    LogCapture log_;
};

INSTANTIATE_TEST_SUITE_P(Protections, KeyUpdate,
                         ::testing::Values(Protection::full, Protection::none),
                         [](const auto& protection) {
                             return protection.param == Protection::full ? "full" : "none";
                         });

TEST_P(KeyUpdate, several_in_mid_transfer_from_both_sides_disturb_nothing) {
    const LinkOptions options{.protection = GetParam()};
    QuicPair pair({.seed = 3,
                   .client = options,
                   .server = options,
                   .weather = {.delay = 1ms, .jitter = 1ms, .loss = 0.01, .mtu = 8952}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 60'000'000);
    AskedSource there(content);
    AskedSource back(content);
    pair.client().send_from(there);
    pair.server().send_from(back);
    std::size_t begun = 0;
    for (int i = 0; i < 40 && !(pair.client().all_released() && pair.server().all_released());
         ++i) {
        pair.world.run_for(30ms);
        LinkEnd& side = i % 2 == 0 ? pair.client() : pair.server();
        if (side.connection().update_keys(pair.world.now())) ++begun;
    }
    ASSERT_TRUE(pair.run_until(
        [&] { return pair.client().all_released() && pair.server().all_released(); }, 60s));
    EXPECT_GE(begun, 3U);
    EXPECT_GE(pair.client().connection().statistics().key_updates, 3U);
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
    EXPECT_TRUE(pair.client().incoming(0).sink.bytes == content);
}

TEST_P(KeyUpdate, too_soon_after_the_last_is_a_harmless_error) {
    const LinkOptions options{.protection = GetParam()};
    QuicPair pair({.client = options, .server = options});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    ASSERT_TRUE(pair.client().connection().update_keys(pair.world.now()));
    EXPECT_FALSE(pair.client().connection().update_keys(pair.world.now()));
    pair.client().send(pattern(1, 100'000));
    EXPECT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 1s));
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, pattern(1, 100'000));
}

TEST_P(KeyUpdate, packets_changed_in_flight_are_rejected_wherever_the_change_is) {
    const LinkOptions options{.protection = GetParam()};
    QuicPair pair({.client = options, .server = options, .weather = {.mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(1s);
    // Changes each byte position of a packet in turn; all are retransmitted unchanged.
    std::size_t position = 0;
    bool change = true;
    pair.net.tap = [&](nexar::sim::Datagram& datagram) {
        if (datagram.to != pair.server_side.host().address()) return true;
        change = !change;
        if (change) datagram.bytes[position++ % datagram.bytes.size()] ^= std::byte{0x10};
        return true;
    };
    const auto content = pattern(1, 4'000'000);
    pair.client().send(content);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 600s));
    EXPECT_GT(position, 1452U);
    EXPECT_EQ(pair.server().incoming(0).sink.bytes, content);
}

}  // namespace
}  // namespace nexar::quic
