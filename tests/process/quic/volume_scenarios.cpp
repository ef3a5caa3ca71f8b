#include "process/quic/scenarios.hpp"

namespace nexar::testing {

namespace {

/// Fails if no payload byte arrives anywhere for this long: far longer than a loaded machine needs,
/// and far shorter than a transfer that limps from timeout to timeout takes.
class StallWatch {
public:
    explicit StallWatch(Wire& wire) : wire_(&wire), moved_at_(wire.driver.now()) {}

    void look() {
        const std::uint64_t bytes = wire_->server.received_bytes() + wire_->client.received_bytes();
        const TimePoint now = wire_->driver.now();
        if (bytes != bytes_) moved_at_ = now;
        longest_ = std::max(longest_, now - moved_at_);
        bytes_ = bytes;
    }

    Duration longest() const noexcept { return longest_; }

private:
    Wire* wire_;
    std::uint64_t bytes_ = 0;
    TimePoint moved_at_;
    Duration longest_{};
};

}  // namespace

void moves_both_ways_without_stall(const VolumeCase& scenario) {
    WireOptions options;
    options.link.largest_datagram = scenario.datagram_bytes;
    Wire wire(options);
    // Bypasses the proxy, which injects faults: this test is about volume.
    const port::LinkId link =
        wire.client.dial(wire.server.address(), {.cluster = wire.cluster.id(), .node = {}});
    ASSERT_TRUE(wire.driver.run_until(
        [&] { return wire.client.story(link).came_up && wire.server.came_up() == 1; },
        patience(std::chrono::seconds(20))))
        << wire.driver.describe();
    StallWatch watch(wire);
    EXPECT_TRUE(wire.transfers({.streams = scenario.streams,
                                .bytes_each = scenario.bytes_each_way / scenario.streams,
                                .both_ways = true,
                                .within = patience(std::chrono::seconds(120)),
                                .meanwhile = [&] { watch.look(); }}));
    EXPECT_LT(watch.longest(), patience(std::chrono::seconds(1)));
}

void never_reads_released_memory(const PoisonCase& scenario) {
    constexpr std::uint64_t kEach = 256 * 1024;
    constexpr std::size_t kAtOnce = 64;
    Wire wire(both_ways(loses(0.02), scenario.seed));
    wire.connect();
    std::uint64_t next = scenario.seed << 20U;
    std::uint64_t sent = 0;
    const std::uint64_t wanted = 2 * scenario.bytes_each_way / kEach;
    const auto refill = [&](Station& station) {
        // Each send reuses memory that was poisoned when an earlier one was released.
        while (station.sending() < kAtOnce && sent < wanted) {
            station.send(*station.link(), {.seed = ++next, .bytes = kEach - next % 999},
                         Station::Memory::referenced);
            ++sent;
        }
    };
    const auto arrived = [&] {
        return wire.server.received().size() + wire.client.received().size();
    };
    ASSERT_TRUE(wire.driver.run_until(
        [&] {
            if (wire.client.link() == nullptr || wire.server.link() == nullptr) return true;
            refill(wire.client);
            refill(wire.server);
            return arrived() == wanted && wire.client.sending() + wire.server.sending() == 0;
        },
        patience(std::chrono::seconds(120))))
        << wire.driver.describe();
    EXPECT_EQ(arrived(), wanted) << wire.driver.describe();
    EXPECT_TRUE(wire.client.faults().empty()) << wire.driver.describe();
    EXPECT_TRUE(wire.server.faults().empty()) << wire.driver.describe();
    EXPECT_GT(wire.traffic(kToServer).dropped, 10U);
    EXPECT_EQ(wire.client.outcomes(port::SendOutcome::delivered) +
                  wire.server.outcomes(port::SendOutcome::delivered),
              wanted);
}

}  // namespace nexar::testing
