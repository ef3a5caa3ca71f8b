// Seed and ranks on separate hosts: network namespaces with cables into one bridge, and addresses
// that lead nowhere or to another process.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nexar/error.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "process/join/hosts.hpp"
#include "support/network_namespace.hpp"
#include "support/temp_directory.hpp"

namespace nexar::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

constexpr int kHosts = 4;  // the first one has the bridge and the seed
constexpr std::chrono::seconds kPatience{20};

struct Network {
    const char* name = "";
    bool v4 = true;
    bool v6 = true;
    bool lonely = false;  // host 1 has an interface without a peer
    int dockers = 0;      // separate bridges on which hosts 0, 1 and 2 have the same addresses
};

std::string v4_of(int host) {
    return fmt::format("10.99.0.{}", host + 1);
}
std::string v6_of(int host) {
    return fmt::format("fd99::{}", host + 1);
}
constexpr const char* kLonely = "10.99.0.200";  // unreachable for the others
std::string docker(int bridge) {
    return fmt::format("172.{}.0.1", 17 + bridge);
}

class Cluster : public ::testing::TestWithParam<Network> {
protected:
    void SetUp() override {
        if (!has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
        try {
            for (int i = 0; i < kHosts; ++i) hosts_.push_back(std::make_unique<Host>());
        } catch (const Error& error) {
            if (error.code() != Errc::unsupported) throw;
            GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
        }
        hosts_[0]->run("ip link add bridge0 type bridge && ip link set bridge0 up");
        for (int i = 0; i < kHosts; ++i) configure(i);
    }

    /// Adds the traps of a host before its cable, so that the dead address is first in its list.
    void add_traps(int host) {
        Host& one = *hosts_[static_cast<std::size_t>(host)];
        if (GetParam().lonely && host == 1) {
            one.run("ip link add lonely type veth peer name nobody && ip link set nobody up");
            one.run(
                fmt::format("ip address add {}/32 dev lonely && ip link set lonely up", kLonely));
            // Otherwise the host answers ARP requests for this address on every cable.
            one.run("echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore");
        }
        for (int i = 0; i < GetParam().dockers && host != 3; ++i) {
            one.run(
                fmt::format("ip link add docker{} type bridge && ip link set docker{} up", i, i));
            one.run(fmt::format("ip address add {}/16 dev docker{}", docker(i), i));
        }
    }

    void configure(int host) {
        const Network& network = GetParam();
        Host& one = *hosts_[static_cast<std::size_t>(host)];
        if (!network.v6) one.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
        one.run("ip link set lo up");
        if (!network.v4) one.run("ip address del 127.0.0.1/8 dev lo");
        add_traps(host);
        const std::string device = host == 0 ? "bridge0" : "cable";
        if (host != 0) {
            hosts_[0]->run(fmt::format("ip link add port{} type veth peer name cable netns {}",
                                       host, one.id()));
            hosts_[0]->run(fmt::format("ip link set port{} master bridge0 up", host));
        }
        if (network.v4) one.run(fmt::format("ip address add {}/24 dev {}", v4_of(host), device));
        if (network.v6) {
            one.run(fmt::format("ip -6 address add {}/64 dev {} nodad", v6_of(host), device));
        }
        one.run(fmt::format("ip link set {} up", device));
        // Packets to unknown addresses are dropped, not refused: the seed's host does not forward.
        if (network.v4 && host != 0) {
            one.run(fmt::format("ip route add default via {}", v4_of(0)));
        }
    }

    /// Starts one rank per entry: its host and its port.
    void start(const std::vector<std::pair<int, int>>& ranks,
               std::chrono::milliseconds formation_timeout = std::chrono::seconds(40),
               const std::string& link = "auto") {
        token_ = hosts_[0]->serve(static_cast<int>(ranks.size()), state_dir(), link);
        std::map<int, Host*> first;
        for (const auto& [host, port] : ranks) {
            Host* const there = hosts_[static_cast<std::size_t>(host)].get();
            if (first.try_emplace(host, there).second) {
                ranks_.push_back(there);
            } else {
                hosts_.push_back(std::make_unique<Host>(there));
                ranks_.push_back(hosts_.back().get());
            }
            host_of_.push_back(host);
            ranks_.back()->begin_join(static_cast<int>(ranks_.size()) - 1, port, token_,
                                      formation_timeout);
        }
    }

    /// Returns the links that all ranks report, after it has checked that each pair has one link,
    /// over an address at which the other host can be reached.
    std::vector<Reached> expect_mesh() {
        std::vector<Reached> all;
        for (Host* rank : ranks_) {
            const auto reached = rank->exchanged();
            EXPECT_EQ(reached.size(), ranks_.size() - 1);
            all.insert(all.end(), reached.begin(), reached.end());
        }
        std::map<std::pair<int, int>, int> dialed;
        for (const Reached& one : all) {
            EXPECT_TRUE(one.connected) << one.from << " to " << one.to << ": " << one.why;
            if (!one.dialed) continue;
            ++dialed[std::minmax(one.from, one.to)];
            std::cout << one.from << " reached " << one.to << " at " << one.address << ": "
                      << one.why << '\n';
            const int host = host_of_[static_cast<std::size_t>(one.to)];
            if (host == host_of_[static_cast<std::size_t>(one.from)]) continue;
            EXPECT_THAT(one.address,
                        AnyOf(StartsWith(v4_of(host) + ":"), StartsWith("[" + v6_of(host) + "]:")));
        }
        for (const auto& [pair, count] : dialed) EXPECT_EQ(count, 1) << "one link per pair";
        EXPECT_EQ(dialed.size(), ranks_.size() * (ranks_.size() - 1) / 2);
        return all;
    }

    std::string state_dir() const { return directory_.path() + "/state"; }

    /// The addresses of a rank's host, as `nexar peers` shows them.
    std::vector<std::string> published(int rank) const {
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < until) {
            std::ifstream file(state_dir() + "/peers.json");
            const auto json = nlohmann::json::parse(file, nullptr, false);
            const auto found = json.is_discarded()
                                   ? nlohmann::json::const_iterator{}
                                   : std::ranges::find_if(json["members"], [&](const auto& member) {
                                         return member["rank"] == rank;
                                     });
            if (json.is_discarded() || found == json["members"].end()) {
                std::this_thread::yield();
                continue;
            }
            std::vector<std::string> hosts;
            for (const auto& address : (*found)["addresses"]) {
                const auto text = address.get<std::string>();
                hosts.push_back(text.substr(0, text.rfind(':')));
            }
            return hosts;
        }
        ADD_FAILURE() << "no peers.json";
        return {};
    }

    TempDirectory directory_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::vector<Host*> ranks_;
    std::vector<int> host_of_;  // of each rank
    std::string token_;
};

std::string name_of(const ::testing::TestParamInfo<Network>& info) {
    return info.param.name;
}

class Hosts : public Cluster {};

TEST_P(Hosts, form_a_cluster_and_exchange_checked_data) {
    start({{1, 0}, {2, 0}, {3, 0}, {3, 0}});
    expect_mesh();
    const auto addresses = published(0);
    std::vector<std::string> expected;
    if (GetParam().v4) expected.insert(expected.end(), {v4_of(1), "127.0.0.1"});
    if (GetParam().v6) expected.insert(expected.end(), {"[" + v6_of(1) + "]", "[::1]"});
    EXPECT_THAT(addresses, UnorderedElementsAreArray(expected));
}

class NetworkNamespaces : public Cluster {
protected:
    static constexpr const char* kWhy =
        "the two have different addresses, so they run on different hosts or in different network "
        "namespaces (containers)";
};

TEST_P(NetworkNamespaces, fall_back_to_quic_and_each_pair_knows_why) {
    start({{1, 0}, {2, 0}, {2, 0}});
    for (const Reached& one : expect_mesh()) {
        const bool together = one.from + one.to == 3;
        EXPECT_THAT(one.why, HasSubstr(together ? "shared memory"
                                                : std::string("no shared memory because ") + kWhy));
        if (together) {
            EXPECT_THAT(one.why, Not(HasSubstr("no shared memory")));
        }
    }
}

TEST_P(NetworkNamespaces, cannot_join_with_link_shm) {
    start({{1, 0}, {2, 0}}, std::chrono::seconds(40), "shm");
    for (Host* rank : ranks_) {
        EXPECT_THAT(rank->failure(), AllOf(HasSubstr("the setting link=shm requires shared memory"),
                                           HasSubstr(kWhy)));
    }
}

INSTANTIATE_TEST_SUITE_P(Over, NetworkNamespaces,
                         ::testing::Values(Network{.name = "ipv4_only", .v6 = false}), name_of);

INSTANTIATE_TEST_SUITE_P(Over, Hosts,
                         ::testing::Values(Network{.name = "ipv4_only", .v6 = false},
                                           Network{.name = "ipv6_only", .v4 = false},
                                           Network{.name = "both"}),
                         name_of);

class LonelyInterface : public Cluster {};

TEST_P(LonelyInterface, is_published_and_does_not_win_the_race) {
    // Both other hosts dial the host with the dead address.
    start({{1, 0}, {2, 0}, {3, 0}});
    const auto all = expect_mesh();
    EXPECT_EQ(published(0).front(), kLonely);
    for (const Reached& one : all) {
        if (one.to != 0) continue;
        EXPECT_THAT(one.why, HasSubstr(kLonely)) << "the dead address was not tried";
    }
}

INSTANTIATE_TEST_SUITE_P(
    Over, LonelyInterface,
    ::testing::Values(Network{.name = "ipv4_only", .v6 = false, .lonely = true},
                      Network{.name = "both", .lonely = true}),
    name_of);

class CutPair : public Cluster {
protected:
    /// Drops everything that one host sends to the other.
    void cut(int from, int to) {
        hosts_[static_cast<std::size_t>(from)]->run(fmt::format(
            "ip neighbour replace {} lladdr 02:00:00:00:00:99 dev cable nud permanent", v4_of(to)));
    }
    static std::size_t count(const std::string& text, const std::string& part) {
        std::size_t times = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
            ++times;
        }
        return times;
    }
};

TEST_P(CutPair, is_named_on_both_ranks_when_the_formation_fails) {
    cut(1, 2);
    cut(2, 1);
    start({{1, 0}, {2, 0}}, std::chrono::milliseconds(1500));
    for (const int rank : {0, 1}) {
        const std::string why = ranks_[static_cast<std::size_t>(rank)]->failure();
        if (why.find("left before") == std::string::npos) {
            EXPECT_THAT(why, HasSubstr(fmt::format("rank {}: no answer from {}:", 1 - rank,
                                                   v4_of(2 - rank))));
        }
        EXPECT_EQ(count(why, "firewall"), 1U) << why;
        EXPECT_EQ(count(why, "127.0.0.1"), 0U) << why;
    }
}

TEST_P(CutPair, connects_through_a_third_rank) {
    cut(1, 2);
    cut(2, 1);
    start({{1, 0}, {2, 0}, {3, 0}});
    int tunnels = 0;
    for (Host* rank : ranks_) {
        for (const Reached& one : rank->exchanged()) {
            EXPECT_TRUE(one.connected) << one.from << " to " << one.to << ": " << one.why;
            if (!one.dialed) continue;
            const bool is_cut = std::minmax(one.from, one.to) == std::minmax(0, 1);
            const int host = host_of_[static_cast<std::size_t>(one.to)];
            EXPECT_EQ(one.address.starts_with(v4_of(host) + ":"), !is_cut)
                << one.from << " reached " << one.to << " at " << one.address;
            tunnels += is_cut ? 1 : 0;
        }
    }
    EXPECT_EQ(tunnels, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, CutPair,
                         ::testing::Values(Network{.name = "ipv4_only", .v6 = false}), name_of);

class DockerBridge : public Cluster {};

TEST_P(DockerBridge, of_two_hosts_leads_to_the_wrong_process_and_does_not_win_the_race) {
    // At the bridge's address and on loopback, rank 0 finds rank 1 instead of 2, and itself instead
    // of 3. At the seed's address it finds itself, too.
    start({{1, 7400}, {1, 7402}, {2, 7402}, {2, 7400}, {3, 7402}});
    const auto all = expect_mesh();
    EXPECT_EQ(published(0).front(), docker(0));
    EXPECT_EQ(published(2).front(), docker(0));
    if (GetParam().dockers == 1) return;
    // Both hosts share most of their addresses and look like one host; only their identities
    // distinguish them.
    EXPECT_THAT(all, Contains(Field(&Reached::why, AllOf(HasSubstr(docker(0)),
                                                         HasSubstr("belongs to another node")))));
}

INSTANTIATE_TEST_SUITE_P(Over, DockerBridge,
                         ::testing::Values(Network{.name = "ipv4_only", .v6 = false, .dockers = 1},
                                           Network{.name = "both", .dockers = 1},
                                           Network{.name = "most_alike", .v6 = false, .dockers = 2},
                                           Network{.name = "most_alike_and_both", .dockers = 3}),
                         name_of);

}  // namespace
}  // namespace nexar::testing
