#include "relay_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/nexar.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "support/child_process.hpp"
#include "support/network_namespace.hpp"

namespace nexar::bench {

namespace {

using Clock = std::chrono::steady_clock;
using testing::Channel;
using testing::ChildProcess;

constexpr int kFirst = 0;
constexpr int kRelay = 1;
constexpr int kLast = 2;
constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kMessageBytes = std::size_t{256} << 10U;
constexpr std::size_t kInFlight = 16;  // messages
constexpr std::uint64_t kBulkTag = 1;
constexpr std::uint64_t kPingTag = 2;
constexpr std::uint64_t kEchoTag = 3;
constexpr std::uint64_t kLastPing = ~std::uint64_t{0};
constexpr std::chrono::milliseconds kPingEvery{2};
constexpr double kWarmUp = 0.25;  // the part of a phase that is not counted

/// What the ranks other than the last one do in a phase.
struct Phase {
    bool first_sends = false;
    bool relay_sends = false;
    bool pings = false;

    bool sends(int rank) const { return rank == kFirst ? first_sends : relay_sends; }
};

std::vector<Phase> phases_of(const RelayLoadOptions& options) {
    std::vector<Phase> phases;
    if (options.alone) phases = {{.first_sends = true}, {.relay_sends = true}};
    phases.push_back({.first_sends = true, .relay_sends = true, .pings = true});
    return phases;
}

/// Sends to the last rank without a pause, then says that this was all.
void send_bulk(const Communicator& world, Clock::time_point until) {
    std::vector<std::byte> content(kMessageBytes);
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i % 251);
    std::array<std::optional<Work<>>, kInFlight> sends;
    for (std::size_t i = 0; Clock::now() < until; ++i) {
        auto& slot = sends[i % kInFlight];
        if (slot) slot->wait();
        slot.emplace(world.send(std::span(std::as_const(content)), kLast, kBulkTag));
    }
    for (auto& slot : sends) {
        if (slot) slot->wait();
    }
    for (std::size_t i = 0; i < kInFlight; ++i) {
        world.send(std::span(std::as_const(content)).first(0), kLast, kBulkTag).wait();
    }
}

/// Returns the bytes per second that arrived from `from` between the two times.
double receive_bulk(const Communicator& world, int from, Clock::time_point begin,
                    Clock::time_point end) {
    std::array<std::vector<std::byte>, kInFlight> memory;
    std::array<std::optional<Work<Status>>, kInFlight> receives;
    for (std::size_t i = 0; i < kInFlight; ++i) {
        memory[i].resize(kMessageBytes);
        receives[i].emplace(world.recv(std::span(memory[i]), from, kBulkTag));
    }
    std::size_t bytes = 0;
    std::size_t ended = 0;
    for (std::size_t i = 0; ended < kInFlight; i = (i + 1) % kInFlight) {
        auto& receive = receives[i];
        if (!receive) continue;
        const Status status = receive->wait();
        receive.reset();
        const auto now = Clock::now();
        if (now >= begin && now < end) bytes += status.bytes;
        if (status.bytes == 0) {
            ++ended;
        } else {
            receive.emplace(world.recv(std::span(memory[i]), from, kBulkTag));
        }
    }
    return static_cast<double>(bytes) / std::chrono::duration<double>(end - begin).count();
}

/// Returns the round trips of small messages, in milliseconds.
std::vector<double> ping(const Communicator& world, Clock::time_point until) {
    std::vector<double> times;
    std::uint64_t number = 0;
    for (auto next = Clock::now(); Clock::now() < until; next += kPingEvery) {
        std::this_thread::sleep_until(next);
        const auto sent = Clock::now();
        world.send(++number, kLast, kPingTag).wait();
        if (world.recv<std::uint64_t>(kLast, kEchoTag).wait() != number) {
            throw Error(Errc::protocol_violation, "another answer than was asked for");
        }
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - sent).count());
    }
    world.send(kLastPing, kLast, kPingTag).wait();
    return times;
}

void echo(const Communicator& world, int from) {
    for (;;) {
        const auto number = world.recv<std::uint64_t>(from, kPingTag).wait();
        if (number == kLastPing) return;
        world.send(number, from, kEchoTag).wait();
    }
}

std::string text_of(const std::vector<double>& numbers) {
    std::string text;
    for (const double one : numbers) text += fmt::format(" {:.4f}", one);
    return text;
}

/// Answers are short, so the times travel in several.
void say_times(const Channel& channel, const std::vector<double>& times) {
    constexpr std::size_t kPerMessage = 200;
    for (std::size_t i = 0; i < times.size(); i += kPerMessage) {
        const std::size_t end = std::min(times.size(), i + kPerMessage);
        channel.say("times" + text_of({times.begin() + static_cast<std::ptrdiff_t>(i),
                                       times.begin() + static_cast<std::ptrdiff_t>(end)}));
    }
}

void send_phase(const Communicator& world, const Phase& phase, double seconds,
                std::vector<double>& times) {
    if (!phase.sends(world.rank())) return;
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
    std::jthread pings;
    if (phase.pings) pings = std::jthread([&] { times = ping(world, until); });
    send_bulk(world, until);
}

std::vector<double> receive_phase(const Communicator& world, const Phase& phase, double seconds) {
    const auto after = [now = Clock::now()](double time) {
        return now +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
    };
    std::vector<double> rates(2);
    std::vector<std::jthread> threads;
    for (const int from : {kFirst, kRelay}) {
        if (!phase.sends(from)) continue;
        threads.emplace_back([&, from] {
            rates[static_cast<std::size_t>(from)] =
                receive_bulk(world, from, after(kWarmUp * seconds), after(seconds));
        });
        if (phase.pings) threads.emplace_back([&, from] { echo(world, from); });
    }
    threads.clear();
    return rates;
}

void be_a_rank(const Channel& channel, int rank, const std::string& join_string,
               const RelayLoadOptions& load) {
    JoinOptions options;
    options.join_string = join_string;
    options.rank = rank;
    const Node node = join(options);
    const Communicator world = node.world();
    for (const PeerLink& peer : node.peers()) {
        const bool direct = rank == kRelay || peer.rank == kRelay;
        if ((peer.hops == 1) != direct) {
            throw Error(Errc::bad_config, fmt::format("rank {} reaches rank {} over {} links", rank,
                                                      peer.rank, peer.hops));
        }
    }
    std::vector<double> times;
    for (const Phase& phase : phases_of(load)) {
        world.barrier().wait();
        if (rank == kLast) {
            channel.say("rates" + text_of(receive_phase(world, phase, load.seconds)));
        } else {
            send_phase(world, phase, load.seconds, times);
        }
    }
    world.barrier().wait();
    say_times(channel, times);
    channel.say("done");
    channel.hear(kPatience);  // the end of the measurement
}

/// A host, and later the rank on it. The relay's host has the seed.
void be_a_host(const Channel& channel, int rank, const RelayLoadOptions& load) {
    testing::enter_new_network();
    testing::run_command("ip link set lo up");
    channel.say("done");
    std::unique_ptr<Seed> seed;
    while (const auto told = channel.hear(kPatience)) {
        if (told->starts_with("join ")) return be_a_rank(channel, rank, told->substr(5), load);
        if (*told == "serve") {
            SeedOptions options;
            options.world = 3;
            options.settings = {{"link", "quic"}};
            seed = std::make_unique<Seed>(options);
            channel.say(seed->create_token({.uses = options.world}));
        } else {
            testing::run_command(*told);
            channel.say("done");
        }
    }
}

/// The other end of a host.
class RemoteHost {
public:
    RemoteHost(int rank, const RelayLoadOptions& load)
        : process_([rank, load](Channel& channel) { be_a_host(channel, rank, load); }) {
        const auto said = process_.channel().hear(kPatience);
        if (said != "done") throw Error(Errc::unsupported, said.value_or("no namespace"));
    }
    pid_t id() const { return process_.id(); }
    void say(const std::string& what) const { process_.channel().say(what); }
    std::string answer() const {
        const auto said = process_.channel().hear(kPatience);
        if (!said) throw Error(Errc::timed_out, "a rank says nothing");
        if (said->starts_with("failed: ")) throw Error(Errc::closed, *said);
        return *said;
    }
    void run(const std::string& command) const {
        say(command);
        answer();
    }
    /// Appends the numbers of its answers until "done", a list per answer.
    std::vector<std::vector<double>> numbers() const {
        std::vector<std::vector<double>> all;
        for (std::string said = answer(); said != "done"; said = answer()) {
            std::istringstream text(said);
            std::string word;
            text >> word;
            all.emplace_back();
            for (double one = 0; text >> one;) all.back().push_back(one);
        }
        return all;
    }

private:
    ChildProcess process_;
};

/// A cable between the relay and another host, with a limit in both directions.
void connect(const RemoteHost& relay, const RemoteHost& other, int number,
             const RelayLoadOptions& options) {
    const std::string near = fmt::format("cable{}", number);
    relay.run(fmt::format("ip link add {} type veth peer name cable netns {}", near, other.id()));
    const auto configure = [&](const RemoteHost& host, const std::string& device, int address) {
        host.run(fmt::format("ip address add 10.98.{}.{}/24 dev {}", number, address, device));
        host.run(fmt::format("ip link set {} mtu {} up", device, options.mtu));
        host.run(fmt::format("tc qdisc add dev {} root tbf rate {} burst 256kb latency 20ms",
                             device, options.rate));
    };
    configure(relay, near, 1);
    configure(other, "cable", 2);
}

std::vector<double> flat(const std::vector<std::vector<double>>& lists) {
    std::vector<double> all;
    for (const auto& one : lists) all.insert(all.end(), one.begin(), one.end());
    return all;
}

}  // namespace

RelayLoad measure_relay_load(const RelayLoadOptions& options) {
    std::array<std::unique_ptr<RemoteHost>, 3> hosts;
    for (const int rank : {kFirst, kRelay, kLast}) {
        hosts.at(static_cast<std::size_t>(rank)) = std::make_unique<RemoteHost>(rank, options);
    }
    const RemoteHost& first = *hosts[kFirst];
    const RemoteHost& relay = *hosts[kRelay];
    const RemoteHost& last = *hosts[kLast];
    connect(relay, first, 0, options);
    connect(relay, last, 1, options);
    relay.say("serve");
    const std::string token = relay.answer();
    for (const auto& host : hosts) host->say("join " + token);

    RelayLoad load;
    const auto rates = last.numbers();
    load.relayed_round_trips = flat(first.numbers());
    load.own_round_trips = flat(relay.numbers());
    if (rates.size() != phases_of(options).size()) throw Error(Errc::closed, "a phase is missing");
    if (options.alone) {
        load.relayed_alone = rates[0].at(kFirst);
        load.own_alone = rates[1].at(kRelay);
    }
    load.relayed = rates.back().at(kFirst);
    load.own = rates.back().at(kRelay);
    return load;
}

}  // namespace nexar::bench
