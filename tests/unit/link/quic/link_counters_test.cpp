#include "link/quic/link_counters.hpp"

#include <gtest/gtest.h>

#include <map>

namespace nexar::quic {
namespace {

std::map<std::string, std::uint64_t> read(const CounterRegistry& registry) {
    std::map<std::string, std::uint64_t> values;
    for (const CounterReading& reading : registry.snapshot()) values[reading.name] = reading.value;
    return values;
}

TEST(LinkCounters, shows_each_count_under_its_own_name_and_adds_up) {
    CounterRegistry registry;
    LinkCounters counters = LinkCounters::add_to(registry).value();
    EndpointCounts endpoint{.packets_in = 1,
                            .malformed = 2,
                            .unknown = 3,
                            .resets_sent = 4,
                            .version_answers = 5,
                            .retries = 6,
                            .dropped = 7,
                            .bad_tokens = 8,
                            .accepted = 9,
                            .refused = 10,
                            .cut_off = 11};
    const UdpCounts udp{.datagrams_out = 12,
                        .calls_out = 13,
                        .datagrams_in = 14,
                        .calls_in = 15,
                        .too_large = 16,
                        .gso_refused = 17,
                        .lost_in_send = 18};
    counters.publish(endpoint, udp);
    endpoint.refused += 100;
    counters.publish(endpoint, udp);
    counters.publish(endpoint, udp);
    const auto values = read(registry);
    ASSERT_EQ(values.size(), LinkCounters::kCounters);
    EXPECT_EQ(values.at("quic_packets_in"), 1U);
    EXPECT_EQ(values.at("quic_dropped"), 7U);
    EXPECT_EQ(values.at("quic_refused"), 110U);
    EXPECT_EQ(values.at("quic_cut_off"), 11U);
    EXPECT_EQ(values.at("udp_datagrams_out"), 12U);
    EXPECT_EQ(values.at("udp_lost_in_send"), 18U);
}

TEST(LinkCounters, a_second_carrier_cannot_take_the_same_names) {
    CounterRegistry registry;
    ASSERT_TRUE(LinkCounters::add_to(registry));
    EXPECT_FALSE(LinkCounters::add_to(registry));
}

}  // namespace
}  // namespace nexar::quic
