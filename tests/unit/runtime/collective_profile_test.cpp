#include "runtime/collective_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/settings.hpp"

namespace nexar::runtime {
namespace {

using schedule::LinkKind;
using schedule::Profile;
using ::testing::HasSubstr;

Result<Profile> profile_of(std::vector<std::pair<std::string, std::string>> settings) {
    ConfigSources sources;
    for (auto& [name, value] : settings) {
        sources.code.push_back({.name = std::move(name), .value = std::move(value)});
    }
    return collective_profile(Config::resolve(kSettings, sources).value());
}

View view_of(const std::vector<std::vector<std::string>>& members) {
    View view{.epoch = Epoch(1)};
    for (const auto& addresses : members) {
        Member& member = view.members.emplace_back();
        member.rank = Rank(static_cast<std::uint32_t>(view.members.size() - 1));
        for (const std::string& one : addresses) {
            member.addresses.push_back(Address::parse(one).value());
        }
    }
    return view;
}

TEST(CollectiveProfile, from_default_settings_equals_the_default_profile) {
    EXPECT_EQ(profile_of({}).value().hash(), Profile{}.hash());
}

TEST(CollectiveProfile, uses_rates_of_the_kind_of_link_for_host_rates_that_are_not_set) {
    const Profile fabric =
        profile_of({{"fabric_latency", "50us"}, {"fabric_bandwidth", "2GB"}, {"link", "quic"}})
            .value();
    EXPECT_DOUBLE_EQ(fabric.host_rates.latency, 50e-6);
    EXPECT_DOUBLE_EQ(fabric.host_rates.per_byte, 0.5e-9);

    const Profile memory = profile_of({{"fabric_latency", "50us"},
                                       {"fabric_reduce", "4GB"},
                                       {"fabric_shared_bandwidth", "10GB"},
                                       {"fabric_ranks_per_core", "2"}})
                               .value();
    EXPECT_DOUBLE_EQ(memory.rates.shared_byte, 0.1e-9);
    EXPECT_DOUBLE_EQ(memory.host_rates.latency, schedule::kSharedMemoryRates.latency);
    EXPECT_DOUBLE_EQ(memory.host_rates.per_byte, schedule::kSharedMemoryRates.per_byte);
    EXPECT_DOUBLE_EQ(memory.host_rates.reduce_byte, 0.25e-9);
    EXPECT_DOUBLE_EQ(memory.host_rates.ranks_per_core, 2);
    EXPECT_DOUBLE_EQ(memory.host_rates.shared_byte, 0);

    const Profile both = profile_of({{"fabric_latency", "50us"},
                                     {"fabric_fill", "1MiB"},
                                     {"fabric_reduce", "4GB"},
                                     {"host_latency", "2us"},
                                     {"host_per_message", "1us"},
                                     {"host_bandwidth", "10GB"},
                                     {"host_both_bandwidth", "5GB"},
                                     {"host_fill", "4KiB"}})
                             .value();
    EXPECT_DOUBLE_EQ(both.rates.latency, 50e-6);
    EXPECT_DOUBLE_EQ(both.rates.fill_bytes, 1 << 20U);
    EXPECT_DOUBLE_EQ(both.host_rates.latency, 2e-6);
    EXPECT_DOUBLE_EQ(both.host_rates.per_message, 1e-6);
    EXPECT_DOUBLE_EQ(both.host_rates.per_byte, 0.1e-9);
    EXPECT_DOUBLE_EQ(both.host_rates.both_byte, 0.2e-9);
    EXPECT_DOUBLE_EQ(both.host_rates.fill_bytes, 4096);
    EXPECT_DOUBLE_EQ(both.host_rates.reduce_byte, both.rates.reduce_byte);
}

TEST(CollectiveProfile, has_the_rates_of_collective_memory) {
    const Profile profile = profile_of({{"memory_latency", "1us"},
                                        {"memory_per_peer", "0ns"},
                                        {"memory_put", "10GB"},
                                        {"memory_read", "5GB"}})
                                .value();
    EXPECT_DOUBLE_EQ(profile.memory.latency, 1e-6);
    EXPECT_DOUBLE_EQ(profile.memory.per_peer, 0);
    EXPECT_DOUBLE_EQ(profile.memory.put_byte, 0.1e-9);
    EXPECT_DOUBLE_EQ(profile.memory.read_byte, 0.2e-9);
    EXPECT_FALSE(profile.memory.shared());
}

TEST(CollectiveProfile, rejects_a_forced_algorithm_that_does_not_exist) {
    const auto none = profile_of({{"collective_algorithm", "all_reduce=tree:64kib"}});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Errc::bad_config);
    EXPECT_THAT(none.error().what(),
                HasSubstr("\"all_reduce=tree:64kib\" does not name an operation"));
}

TEST(LinksOfAView, members_with_equal_addresses_have_host_links) {
    const schedule::Links links = links_of(view_of({{"10.0.0.1:7000", "[fd00::1]:7000"},
                                                    {"10.0.0.2:7000"},
                                                    {"[fd00::1]:7001", "10.0.0.1:7001"},
                                                    {"10.0.0.2:7001"}})
                                               .members);
    EXPECT_EQ(links.between(0, 2), LinkKind::host);
    EXPECT_EQ(links.between(1, 3), LinkKind::host);
    EXPECT_EQ(links.between(0, 1), LinkKind::fabric);
    EXPECT_EQ(links.between(2, 3), LinkKind::fabric);
}

// Many machines have a bridge with the same address; only their other addresses differ.
TEST(LinksOfAView, members_that_share_only_some_addresses_have_fabric_links) {
    const schedule::Links links = links_of(view_of({{"10.0.0.1:7000", "172.17.0.1:7000"},
                                                    {"10.0.0.2:7000", "172.17.0.1:7000"},
                                                    {"172.17.0.1:7000"},
                                                    {},
                                                    {}})
                                               .members);
    EXPECT_EQ(links, schedule::Links());
}

}  // namespace
}  // namespace nexar::runtime
