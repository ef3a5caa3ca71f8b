#include "process/chaos/networks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nexar/error.hpp>

#include "support/network_namespace.hpp"

namespace nexar::chaos {

namespace {

constexpr std::chrono::seconds kAnswerTime{30};
constexpr std::chrono::hours kWholeTest{24};

}  // namespace

std::unique_ptr<testing::ChildProcess> Networks::hold() {
    auto holder = std::make_unique<testing::ChildProcess>([](testing::Channel& channel) {
        testing::enter_new_network();
        testing::run_command("ip link set lo up");
        channel.say("done");
        while (const auto command = channel.hear(kWholeTest)) {
            testing::run_command(*command);
            channel.say("done");
        }
    });
    const auto said = holder->channel().hear(kAnswerTime);
    if (said != "done") throw Error(Errc::unsupported, said.value_or("no namespace"));
    return holder;
}

void Networks::order(const testing::ChildProcess& holder, const std::string& command) {
    holder.channel().say(command);
    const auto said = holder.channel().hear(kAnswerTime);
    if (said != "done") throw Error(Errc::bad_config, said.value_or("no answer to " + command));
}

void Networks::run(int host, const std::string& command) {
    order(*holders_.at(static_cast<std::size_t>(host)), command);
}

std::string Networks::address(int host) {
    return fmt::format("10.99.0.{}", host + 1);
}

Networks::Networks(int hosts) : switch_(hold()), apart_(static_cast<std::size_t>(hosts), false) {
    run_in_switch("ip link add whole type bridge && ip link set whole up");
    run_in_switch("ip link add other type bridge && ip link set other up");
    for (int i = 0; i < hosts; ++i) {
        holders_.push_back(hold());
        run_in_switch(
            fmt::format("ip link add port{} type veth peer name cable netns {}", i, host(i)));
        run_in_switch(fmt::format("ip link set port{} master whole up", i));
        run(i, fmt::format("ip address add {}/24 dev cable && ip link set cable up", address(i)));
    }
}

void Networks::cut(const std::vector<int>& hosts) {
    std::string command = "true";
    for (int i = 0; i < static_cast<int>(apart_.size()); ++i) {
        const bool apart = std::ranges::find(hosts, i) != hosts.end();
        if (apart_[static_cast<std::size_t>(i)] == apart) continue;
        apart_[static_cast<std::size_t>(i)] = apart;
        command += fmt::format(" && ip link set port{} master {}", i, apart ? "other" : "whole");
    }
    run_in_switch(command);
}

}  // namespace nexar::chaos
