#include <fmt/format.h>

#include "process/quic/scenarios.hpp"

namespace nexar::testing {

namespace {

/// Keeps sending payloads in one direction: the next one follows as soon as one is released, so
/// that a transfer lasts as long as the test needs.
class Flow {
public:
    Flow(Station& from, Station& to, std::uint64_t seed, std::uint64_t bytes)
        : from_(&from), to_(&to), seed_(seed), bytes_(bytes) {}

    void keep_going() {
        port::Link* link = from_->link();
        if (link == nullptr || from_->sending() > 0) return;
        from_->send(*link, {.seed = seed_ + sent_, .bytes = bytes_ - sent_ % 1000},
                    Station::Memory::referenced);
        ++sent_;
    }

    bool arrived() const { return from_->sending() == 0 && to_->received().size() == sent_; }
    std::size_t sent() const noexcept { return sent_; }

private:
    Station* from_;
    Station* to_;
    std::uint64_t seed_;
    std::uint64_t bytes_;
    std::size_t sent_ = 0;
};

bool lost(const Wire& wire) {
    return wire.client.link() == nullptr || wire.server.link() == nullptr;
}

void expect_all_arrived(Wire& wire, const Flow& there, const Flow& back) {
    EXPECT_TRUE(
        wire.driver.run_until([&] { return lost(wire) || (there.arrived() && back.arrived()); },
                              patience(std::chrono::seconds(60))))
        << wire.driver.describe();
    EXPECT_FALSE(lost(wire)) << wire.driver.describe();
    EXPECT_EQ(wire.server.received().size(), there.sent()) << wire.driver.describe();
    EXPECT_EQ(wire.client.received().size(), back.sent()) << wire.driver.describe();
    EXPECT_TRUE(wire.server.faults().empty()) << wire.driver.describe();
    EXPECT_TRUE(wire.client.faults().empty()) << wire.driver.describe();
}

/// The sources between which rebinding switches.
std::vector<udp_fault::Address> loopback_addresses() {
    std::vector<udp_fault::Address> addresses;
    for (int i = 2; i < 6; ++i) {
        addresses.push_back(udp_fault::Address::parse(fmt::format("127.0.0.{}:0", i)).value());
    }
    return addresses;
}

udp_fault::FaultOptions holes_of(const BlackholeCase& scenario) {
    udp_fault::FaultOptions faults;
    faults.blackhole = {
        .after = scenario.every - scenario.lasts, .lasts = scenario.lasts, .every = scenario.every};
    return faults;
}

}  // namespace

void survives_blackholes(const BlackholeCase& scenario) {
    Wire wire(both_ways({}, scenario.seed));
    wire.connect();
    const auto faults = holes_of(scenario);
    ASSERT_TRUE(wire.proxy.set_faults(kToServer, faults).has_value());
    ASSERT_TRUE(wire.proxy.set_faults(kToClient, faults).has_value());
    Flow there(wire.client, wire.server, scenario.seed, scenario.bytes);
    Flow back(wire.server, wire.client, scenario.seed << 20U, scenario.bytes);
    const TimePoint end =
        wire.driver.now() + static_cast<Duration::rep>(scenario.holes) * scenario.every;
    wire.driver.run_until(
        [&] {
            there.keep_going();
            back.keep_going();
            return lost(wire) || wire.driver.now() >= end;
        },
        2 * static_cast<Duration::rep>(scenario.holes) * scenario.every);
    expect_all_arrived(wire, there, back);
    EXPECT_GT(there.sent(), scenario.holes);
    EXPECT_GT(wire.traffic(kToServer).blackholed, scenario.holes);
    EXPECT_GT(wire.traffic(kToClient).blackholed, 0U);
}

void survives_rebinding(const RebindCase& scenario) {
    WireOptions options = both_ways({}, scenario.seed);
    options.rebind.after = scenario.after;
    options.rebind.every = scenario.every;
    if (scenario.address) options.rebind.addresses = loopback_addresses();
    Wire wire(options);
    wire.connect();
    Flow there(wire.client, wire.server, scenario.seed, scaled(4'000'000));
    Flow back(wire.server, wire.client, scenario.seed << 20U, scaled(4'000'000));
    const TimePoint end = wire.driver.now() + scenario.length;
    wire.driver.run_until(
        [&] {
            there.keep_going();
            back.keep_going();
            return lost(wire) || wire.driver.now() >= end;
        },
        2 * scenario.length);
    expect_all_arrived(wire, there, back);
    ASSERT_NE(wire.server.link(), nullptr);
    const auto& connection = wire.server.connection(wire.server.link()->id());
    EXPECT_GE(connection.statistics().path_changes, scenario.least_changes);
}

}  // namespace nexar::testing
