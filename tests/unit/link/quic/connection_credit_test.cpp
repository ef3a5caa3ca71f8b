#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"

// The credit that a receiver returns to its peer.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;

/// Datagrams that the server sends from now on.
class ServerPackets {
public:
    explicit ServerPackets(QuicPair& pair) {
        pair.net.tap = [this, from = pair.server_side.host().address()](sim::Datagram& datagram) {
            if (datagram.from == from) ++count;
            return true;
        };
    }
    std::uint64_t count = 0;
};

constexpr std::uint64_t kAllowedStreams = 64;
constexpr std::size_t kStreamBytes = std::size_t{256} * 1024;
constexpr std::uint64_t kWindow = std::uint64_t{128} * 1024;
constexpr std::size_t kStep = std::size_t{5} * 1024;

class ConnectionCredit : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(pair_.connect());
        pair_.world.run_for(1s);  // until the MTU of the path is known
    }

    void send_all() {
        for (std::uint64_t i = 0; i < kAllowedStreams; ++i)
            pair_.client().send(pattern(i, kStreamBytes));
    }

    /// The sinks take a little of each stream in turn.
    void take_in_steps() {
        while (pair_.server().is_up() && pair_.server().finished() != kAllowedStreams) {
            for (const port::StreamId stream : pair_.server().opened()) {
                if (!pair_.server().is_up()) return;
                pair_.server().incoming(stream).sink.allowance += kStep;
                pair_.server().link().wake_sink(stream);
                pair_.world.run_for(10us);
            }
        }
        pair_.world.run_for(100ms);
    }

    void expect_all_arrived() {
        ASSERT_TRUE(pair_.client().is_up()) << pair_.client().down()->what();
        ASSERT_EQ(pair_.server().finished(), kAllowedStreams);
        EXPECT_TRUE(pair_.client().all_released());
        for (std::uint64_t i = 0; i < kAllowedStreams; ++i) {
            EXPECT_TRUE(pair_.server().incoming(i).sink.bytes == pattern(i, kStreamBytes)) << i;
        }
    }

    QuicPair pair_{{.client = {.idle_packets_per_second = 50, .idle_packets_burst = 100},
                    .server = {.first_window = 8 * 1024, .bulk_window = kWindow},
                    .weather = {.delay = 100us}}};
};

TEST_F(ConnectionCredit, for_many_streams_in_small_steps_costs_few_packets) {
    pair_.server().on_opened = [](LinkEnd& end, port::StreamId stream) {
        end.incoming(stream).sink.allowance = 0;
        end.receive(stream);
    };
    send_all();
    pair_.world.run_for(100ms);
    EXPECT_EQ(pair_.server().connection().statistics().parked, kAllowedStreams * kWindow);
    ServerPackets packets(pair_);
    take_in_steps();
    expect_all_arrived();
    // One packet per quarter of a window, and as many acknowledgements.
    EXPECT_LE(packets.count, 2 * kAllowedStreams * (kStreamBytes / (kWindow / 4)));
}

}  // namespace
}  // namespace nexar::quic
