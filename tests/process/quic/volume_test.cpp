// Many streams at once, the memory they are sent from, and receivers that do not receive.

#include "process/quic/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST(QuicVolume, moves_64_streams_each_way_at_once_in_ethernet_datagrams) {
    moves_both_ways_without_stall({.bytes_each_way = scaled(64 * kMiB)});
}

TEST(QuicVolume, moves_64_streams_each_way_at_once_in_the_largest_datagrams) {
    moves_both_ways_without_stall({.bytes_each_way = scaled(64 * kMiB), .datagram_bytes = 65000});
}

TEST(QuicVolume, never_reads_released_memory_again) {
    never_reads_released_memory({.bytes_each_way = scaled(64 * kMiB), .seed = test_seed(61)});
}

/// Takes a number of bytes, and then nothing more.
class StuckSink final : public port::Sink {
public:
    explicit StuckSink(std::size_t room) noexcept : room_(room) {}

    std::size_t write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept override {
        const std::size_t taken = std::min(room_, bytes.size());
        room_ -= taken;
        return taken;
    }
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

private:
    std::size_t room_;
};

TEST(QuicStuckReceiver, stalls_only_the_streams_that_nobody_receives) {
    Wire wire;
    wire.connect();
    // The first stream gets a sink that stops, the second gets none, the others get working ones.
    StuckSink stuck(100'000);
    std::size_t opened = 0;
    wire.server.on_opened = [&](port::Link& link, port::StreamId stream) {
        ++opened;
        if (opened == 1) {
            link.receive(stream, stuck);
            link.open_window(stream);
        }
        return opened <= 2;
    };
    constexpr std::uint64_t kUnwanted = 16 * kMiB;
    wire.client.send(wire.client_link(), {.seed = 1, .bytes = kUnwanted});
    wire.client.send(wire.client_link(), {.seed = 2, .bytes = kUnwanted});
    ASSERT_TRUE(wire.driver.run_until([&] { return opened == 2; }, patience(seconds(20))))
        << wire.driver.describe();
    for (std::uint64_t i = 0; i < 8; ++i) {
        wire.client.send(wire.client_link(), {.seed = 10 + i, .bytes = scaled(8 * kMiB)});
    }
    EXPECT_TRUE(wire.driver.run_until(
        [&] { return wire.server.received().size() == 8 && wire.client.sending() == 2; },
        patience(seconds(60))))
        << wire.driver.describe();
    const auto link = wire.server_link().id();
    EXPECT_LE(wire.server.connection(link).statistics().parked,
              ethernet_link().bulk_window + ethernet_link().first_window);
}

TEST(QuicStuckReceiver,
     a_peer_that_receives_nothing_does_not_affect_other_links_or_its_control_lane) {
    WireOptions options;
    options.link.park_budget = 4 * kMiB;
    options.link.connection_window = 4 * kMiB;
    Wire wire(options);
    const port::LinkId hopeless = wire.connect();
    // More than the budget and the connection window allow to be parked.
    wire.server.on_opened = [&](port::Link& link, port::StreamId) {
        return link.peer().node == TestCluster::node_id(1);
    };
    for (std::uint64_t i = 0; i < 200; ++i) {
        wire.client.send(wire.client_link(), {.seed = 100 + i, .bytes = kMiB});
    }
    const auto at_server = [&]() -> quic::Connection& {
        return wire.server.connection(port::LinkId(1));
    };
    ASSERT_TRUE(wire.driver.run_until(
        [&] { return at_server().statistics().parked > options.link.park_budget; },
        patience(seconds(20))))
        << "the park budget was never used up";
    Station other(loopback(), wire.pool, node_options(wire.cluster, 2));
    wire.driver.add(other);
    other.dial(wire.entrance(), {.cluster = wire.cluster.id(), .node = {}});
    ASSERT_TRUE(
        wire.driver.run_until([&] { return other.link() != nullptr; }, patience(seconds(20))));
    other.send(*other.link(), {.seed = 7, .bytes = scaled(32 * kMiB)});
    EXPECT_TRUE(wire.driver.run_until([&] { return wire.server.received().size() == 1; },
                                      patience(seconds(60))))
        << wire.driver.describe();

    HashingSink control;
    static_cast<port::Link&>(at_server()).receive(port::Lane::control, control);
    const Payload note{.seed = 9, .bytes = 20'000};
    const auto prefix = note.prefix();
    std::vector<std::byte> content(note.bytes);
    fill_pattern(note.seed, 0, content);
    const std::array<port::ConstBytes, 2> pieces{prefix, content};
    ASSERT_TRUE(wire.client.story(hopeless).link->write(port::Lane::control, pieces));
    EXPECT_TRUE(
        wire.driver.run_until([&] { return control.taken() == note.bytes + Payload::kPrefixBytes; },
                              patience(seconds(20))))
        << control.taken() << " bytes of the control lane arrived";
    EXPECT_EQ(control.verdict(), "");
    EXPECT_EQ(wire.client.sending(), 200U);
    EXPECT_LE(at_server().statistics().parked,
              options.link.park_budget + options.link.connection_window);
    wire.driver.remove(other);
}

}  // namespace
}  // namespace nexar::testing
