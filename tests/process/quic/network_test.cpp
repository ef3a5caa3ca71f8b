// Both IP versions on loopback, and two hosts: namespaces connected by a veth pair.

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>

#include "process/quic/wire.hpp"
#include "support/child_process.hpp"
#include "support/network_namespace.hpp"

namespace nexar::testing {
namespace {

using std::chrono::seconds;

TEST(QuicNetwork, works_on_ipv4_and_discovers_the_mtu_of_loopback) {
    WireOptions options;
    options.link = {};
    Wire wire(options);
    const port::LinkId link = wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 4, .bytes_each = scaled(8'000'000), .both_ways = true}));
    EXPECT_EQ(wire.client.connection(link).statistics().datagram_bytes, 65000U);
}

TEST(QuicNetwork, works_on_ipv6_and_discovers_the_mtu_of_loopback) {
    if (::access("/proc/net/if_inet6", F_OK) != 0) GTEST_SKIP() << "this kernel has no IPv6";
    WireOptions options;
    options.link = {};
    options.v6 = true;
    Wire wire(options);
    const port::LinkId link = wire.connect();
    EXPECT_TRUE(wire.transfers({.streams = 4, .bytes_each = scaled(8'000'000), .both_ways = true}));
    EXPECT_EQ(wire.client.connection(link).statistics().datagram_bytes, 65000U);
}

struct NetworkCase {
    int mtu = 1500;
    bool v6 = false;
    bool checksums = true;  // without them the device refuses segmentation offload in many kernels
};

void switch_checksums_off(const char* device) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    ethtool_value value{.cmd = ETHTOOL_STXCSUM, .data = 0};
    ifreq request{};
    std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&value);
    const int code = ::ioctl(socket, SIOCETHTOOL, &request);
    ::close(socket);
    if (code != 0) throw Error(Errc::unsupported, "the veth device keeps its checksum offload");
}

constexpr const char* kDevices[] = {"nexar0", "nexar1"};

void configure(int side, const NetworkCase& network) {
    run_command(fmt::format("ip address add 10.99.0.{}/24 dev {}", side + 1, kDevices[side]));
    run_command(
        fmt::format("ip -6 address add fd99::{}/64 dev {} nodad", side + 1, kDevices[side]));
    if (!network.checksums) switch_checksums_off(kDevices[side]);
    run_command(fmt::format("ip link set {} mtu {} up", kDevices[side], network.mtu));
}

std::string hear(const Channel& channel) {
    const auto message = channel.hear(patience(seconds(60)));
    return message.value_or("(nothing)");
}

/// The host that is dialed. Creates the cable, whose other end goes into the namespace of the given
/// process.
void serve(Channel& channel, const TestCluster& cluster, const NetworkCase& network) {
    enter_new_network();
    channel.say("entered");
    run_command(fmt::format("ip link add {} type veth peer name {} netns {}", kDevices[0],
                            kDevices[1], hear(channel)));
    configure(0, network);
    BufferPool pool(PoolProfile::training());
    const auto local = Address::parse(network.v6 ? "[fd99::1]:7400" : "10.99.0.1:7400");
    Station server(local.value(), pool, node_options(cluster, 0, {}));
    channel.say("listening");
    LinkDriver driver;
    driver.add(server);
    driver.watch(channel.descriptor());
    driver.run_until([&] { return channel.heard().has_value(); }, patience(seconds(60)));
    channel.say(fmt::format("received {} faults {} refused {}", server.received().size(),
                            server.faults().size(),
                            server.carrier().socket().counts().gso_refused));
}

void dial(Channel& channel, const TestCluster& cluster, const NetworkCase& network) {
    enter_new_network();
    channel.say("entered");
    hear(channel);
    configure(1, network);
    BufferPool pool(PoolProfile::training());
    const auto local = Address::parse(network.v6 ? "[fd99::2]:0" : "10.99.0.2:0");
    const auto remote = Address::parse(network.v6 ? "[fd99::1]:7400" : "10.99.0.1:7400");
    Station client(local.value(), pool, node_options(cluster, 1, {}));
    LinkDriver driver;
    driver.add(client);
    const auto link = client.dial(remote.value(), {.cluster = cluster.id(), .node = {}});
    if (!driver.run_until([&] { return client.story(link).came_up; }, patience(seconds(20)))) {
        throw Error(Errc::timed_out, driver.describe());
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        client.send(*client.link(), {.seed = i, .bytes = scaled(8'000'000) + i});
    }
    if (!driver.run_until([&] { return client.sending() == 0; }, patience(seconds(30)))) {
        throw Error(Errc::timed_out, driver.describe());
    }
    const std::size_t width = client.connection(link).statistics().datagram_bytes;
    channel.say(fmt::format("width {} delivered {} refused {}", width,
                            client.outcomes(port::SendOutcome::delivered),
                            client.carrier().socket().counts().gso_refused));
}

/// The results of the two hosts; empty if namespaces cannot be created here.
std::vector<std::string> talk_between_hosts(const NetworkCase& network) {
    const TestCluster cluster;
    ChildProcess server([&](Channel& channel) { serve(channel, cluster, network); });
    ChildProcess client([&](Channel& channel) { dial(channel, cluster, network); });
    if (hear(server.channel()) != "entered" || hear(client.channel()) != "entered") return {};
    server.channel().say(std::to_string(client.id()));
    if (const auto said = hear(server.channel()); said != "listening") return {said};
    client.channel().say("go");
    std::vector<std::string> said{hear(client.channel())};
    server.channel().say("stop");
    said.push_back(hear(server.channel()));
    return said;
}

class QuicVeth : public ::testing::TestWithParam<NetworkCase> {};

TEST_P(QuicVeth, a_link_discovers_the_mtu_of_the_network) {
    if (!has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
    const NetworkCase network = GetParam();
    const auto said = talk_between_hosts(network);
    if (said.empty()) GTEST_SKIP() << "no network namespaces for this user; run as root";
    ASSERT_EQ(said.size(), 2U) << said[0];
    EXPECT_TRUE(said[0].starts_with(fmt::format("width {} delivered 4 ", network.mtu - 48)))
        << said[0];
    EXPECT_TRUE(said[1].starts_with("received 4 faults 0 ")) << said[1];
}

std::string name_of(const ::testing::TestParamInfo<NetworkCase>& info) {
    return fmt::format("mtu_{}_ipv{}{}", info.param.mtu, info.param.v6 ? 6 : 4,
                       info.param.checksums ? "" : "_without_offload");
}

INSTANTIATE_TEST_SUITE_P(networks, QuicVeth,
                         ::testing::Values(NetworkCase{.mtu = 1500}, NetworkCase{.mtu = 9000},
                                           NetworkCase{.mtu = 1500, .v6 = true},
                                           NetworkCase{.mtu = 9000, .v6 = true},
                                           NetworkCase{.mtu = 1500, .checksums = false}),
                         name_of);

}  // namespace
}  // namespace nexar::testing
