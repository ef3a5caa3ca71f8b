#include "process/join/hosts.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nexar/nexar.hpp>
#include <sstream>

#include "support/network_namespace.hpp"

namespace nexar::testing {

namespace {

constexpr std::chrono::seconds kJoinTime{40};
constexpr std::chrono::seconds kAnswerTime{60};
constexpr std::size_t kLargeBytes = 300'000;  // sent as a payload stream
constexpr std::size_t kSmallBytes = 100;

std::vector<std::uint8_t> pattern(int from, int to, std::size_t bytes) {
    std::vector<std::uint8_t> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<std::uint8_t>(31U * static_cast<unsigned>(from) +
                                            17U * static_cast<unsigned>(to) + i % 251 + i / 251);
    }
    return made;
}

void exchange(Communicator& world, std::size_t bytes) {
    const int me = world.rank();
    std::vector<std::vector<std::uint8_t>> out;
    std::vector<Work<>> sends;
    for (int to = 0; to < world.size(); ++to) {
        out.push_back(pattern(me, to, bytes));
        sends.push_back(world.send(std::span(out.back()), to, bytes));
    }
    for (int from = 0; from < world.size(); ++from) {
        std::vector<std::uint8_t> in(bytes);
        auto receive = world.recv(std::span(in), from, bytes);
        if (!receive.wait_for(kJoinTime)) {
            throw Error(Errc::timed_out, fmt::format("rank {} got nothing from {}", me, from));
        }
        receive.wait();
        if (in != pattern(from, me, bytes)) {
            throw Error(Errc::protocol_violation,
                        fmt::format("rank {} got wrong bytes from {}", me, from));
        }
    }
    for (Work<>& send : sends) send.wait();
}

void wait_for_the_end(const Channel& channel) {
    channel.hear(2 * kAnswerTime);
}

void be_the_seed(const Channel& channel, std::istringstream& order) {
    SeedOptions options;
    std::string link;
    order >> options.world >> options.state_dir >> link;
    options.settings = {{"link", link}};
    Seed seed(options);
    channel.say("token " + seed.create_token({.uses = options.world}));
    wait_for_the_end(channel);
}

void be_a_rank(const Channel& channel, std::istringstream& order) {
    JoinOptions options;
    int rank = 0;
    int port = 0;
    int timeout_ms = 0;
    order >> rank >> port >> options.join_string >> timeout_ms;
    options.rank = rank;
    options.settings = {{"formation_timeout", fmt::format("{}ms", timeout_ms)}};
    if (port != 0) options.settings.emplace_back("listen", fmt::format("[::]:{}", port));
    const Node node = join(options);
    Communicator world = node.world();
    exchange(world, kSmallBytes);
    exchange(world, kLargeBytes);
    for (const PeerLink& peer : node.peers()) {
        channel.say(fmt::format("peer {} {} {} {} {}", rank, peer.rank, peer.connected ? 1 : 0,
                                peer.dialed ? peer.address : "-", peer.why));
    }
    channel.say("exchanged");
    wait_for_the_end(channel);
}

void obey(const Channel& channel) {
    while (const auto told = channel.hear(2 * kAnswerTime)) {
        std::istringstream order(*told);
        std::string what;
        order >> what;
        if (what == "run") {
            run_command(told->substr(what.size() + 1));
            channel.say("done");
        } else if (what == "seed") {
            return be_the_seed(channel, order);
        } else if (what == "rank") {
            return be_a_rank(channel, order);
        }
    }
}

}  // namespace

Host::Host(const Host* neighbour) {
    process_ = std::make_unique<ChildProcess>([neighbour](Channel& channel) {
        if (neighbour == nullptr) {
            enter_new_network();
        } else {
            enter_network_of(neighbour->id());
        }
        take_host_name("nobody-resolves-this.invalid");
        channel.say("entered");
        obey(channel);
    });
    const auto said = process_->channel().hear(kAnswerTime);
    if (said != "entered") throw Error(Errc::unsupported, said.value_or("no namespace"));
}

std::string Host::answer() {
    auto said = process_->channel().hear(kAnswerTime);
    if (!said) throw Error(Errc::timed_out, "a host says nothing");
    if (said->starts_with("failed: ")) throw Error(Errc::closed, *said);
    return std::move(*said);
}

void Host::run(const std::string& command) {
    process_->channel().say("run " + command);
    answer();
}

std::string Host::serve(int world, const std::string& state_dir, const std::string& link) {
    process_->channel().say(fmt::format("seed {} {} {}", world, state_dir, link));
    return answer().substr(std::string_view("token ").size());
}

void Host::begin_join(int rank, int port, const std::string& join_string,
                      std::chrono::milliseconds formation_timeout) {
    process_->channel().say(
        fmt::format("rank {} {} {} {}", rank, port, join_string, formation_timeout.count()));
}

std::string Host::failure() {
    try {
        exchanged();
    } catch (const Error& error) {
        return error.cause();
    }
    return {};
}

std::vector<Reached> Host::exchanged() {
    std::vector<Reached> all;
    for (std::string said = answer(); said != "exchanged"; said = answer()) {
        std::istringstream text(said);
        std::string word;
        Reached one;
        text >> word >> one.from >> one.to >> one.connected >> one.address;
        std::getline(text >> std::ws, one.why);
        one.dialed = one.address != "-";
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace nexar::testing
