#include "process/chaos/lossy_paths.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nexar/error.hpp>
#include <vector>

#include "support/network_namespace.hpp"
#include "support/udp_fault/proxy.hpp"

namespace nexar::chaos {

namespace {

constexpr std::chrono::seconds kProxyTime{30};
constexpr std::chrono::hours kProxyLife{24};
constexpr const char* kSwitchAddress = "10.99.0.254";

/// The address of a host that leads to its proxy.
std::string second_address(int host) {
    return fmt::format("10.98.0.{}", host + 1);
}

udp_fault::Address at_port(const std::string& address) {
    return udp_fault::Address::parse(fmt::format("{}:{}", address, LossyPaths::kPort)).value();
}

struct LossyRun {
    int ranks = 0;
    double loss = 0;
    std::uint64_t seed = 0;
};

void be_the_proxies(testing::Channel& channel, pid_t network, const LossyRun& run) {
    testing::enter_network_of(network);
    std::vector<udp_fault::Proxy> proxies;
    proxies.reserve(static_cast<std::size_t>(run.ranks));
    for (int host = 1; host <= run.ranks; ++host) {
        udp_fault::ProxyOptions options;
        options.listen = at_port(second_address(host));
        options.target = at_port(Networks::address(host));
        options.to_target.drop.probability = run.loss;
        options.to_client.drop.probability = run.loss;
        options.seed = run.seed + static_cast<std::uint64_t>(host);
        proxies.push_back(udp_fault::Proxy::start(options).value());
    }
    channel.say("ready");
    while (channel.hear(kProxyLife)) {
        std::uint64_t delivered = 0;
        std::uint64_t dropped = 0;
        for (const udp_fault::Proxy& proxy : proxies) {
            for (const auto direction :
                 {udp_fault::Direction::to_target, udp_fault::Direction::to_client}) {
                const udp_fault::Traffic traffic = proxy.traffic(direction);
                delivered += traffic.delivered;
                dropped += traffic.dropped;
            }
        }
        channel.say(
            fmt::format("the proxies delivered {} packets and dropped {}", delivered, dropped));
    }
}

}  // namespace

LossyPaths::LossyPaths(Networks& networks, int ranks, double loss, std::uint64_t seed) {
    networks.run_in_switch(fmt::format("ip address add {}/24 dev whole", kSwitchAddress));
    for (int host = 1; host <= ranks; ++host) {
        networks.run_in_switch(fmt::format("ip address add {}/32 dev lo", second_address(host)));
        networks.run_in_switch(
            fmt::format("ip link set port{} type bridge_slave isolated on", host));
        networks.run(host, fmt::format("ip address add {}/32 dev cable", second_address(host)));
        networks.run(host, fmt::format("ip route add 10.98.0.0/24 via {}", kSwitchAddress));
    }
    const LossyRun run{.ranks = ranks, .loss = loss, .seed = seed};
    proxies_ = std::make_unique<testing::ChildProcess>(
        [&, network = networks.switch_host()](testing::Channel& channel) {
            be_the_proxies(channel, network, run);
        });
    const auto said = proxies_->channel().hear(kProxyTime);
    if (said != "ready") throw Error(Errc::bad_config, said.value_or("the proxies did not start"));
}

std::string LossyPaths::describe() const {
    proxies_->channel().say("traffic");
    return proxies_->channel().hear(kProxyTime).value_or("the proxies have ended");
}

}  // namespace nexar::chaos
