#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link/sim/fabric.hpp"
#include "report.hpp"

/// Measures how much faster than real time a cluster on simulated links runs: every node sends a
/// heartbeat datagram and a message every 10 ms of virtual time, over links with jitter. Fails
/// below 1000 times.
namespace {

using namespace nexar;
using namespace std::chrono_literals;

constexpr Duration kBeat = 10ms;
constexpr double kLeastSpeed = 1000;
constexpr std::size_t kMessageBytes = 64;

// CPU time of this process, so that other load on the machine does not count.
double cpu_seconds() noexcept {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

class CountingSink final : public port::Sink {
public:
    std::size_t write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept override {
        received += bytes.size();
        return bytes.size();
    }
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }
    std::uint64_t received = 0;
};

/// A node that sends heartbeats.
class Node final : public sim::Actor {
public:
    Node(sim::Carrier& carrier, std::size_t peers_per_beat, TimePoint first)
        : carrier_(&carrier), peers_per_beat_(peers_per_beat), beat_at_(first) {
        carrier.driven_by(*this);
        carrier.world().add(*this);
    }

    void turn(TimePoint now) override {
        carrier_->on_ready(now);
        carrier_->flush(now);
        while (auto event = carrier_->poll_event()) take(*event);
        if (now >= beat_at_) {
            beat();
            beat_at_ += kBeat;
        }
        carrier_->flush(now);
    }
    std::optional<TimePoint> next_deadline() const override {
        const auto due = carrier_->next_deadline();
        return due ? std::min(*due, beat_at_) : beat_at_;
    }

    std::size_t links() const noexcept { return links_.size(); }
    std::uint64_t heartbeats() const noexcept { return heartbeats_; }
    std::uint64_t messages() const noexcept {
        std::uint64_t bytes = 0;
        for (const auto& sink : sinks_) bytes += sink->received;
        return bytes / kMessageBytes;
    }

private:
    void take(const port::LinkEvent& event) {
        if (const auto* up = std::get_if<port::Up>(&event.what)) {
            links_.push_back(up->link);
            sinks_.push_back(std::make_unique<CountingSink>());
            up->link->receive(port::Lane::eager, *sinks_.back());
        } else if (std::holds_alternative<port::DatagramArrived>(event.what)) {
            ++heartbeats_;
        }
    }

    void beat() {
        const std::array<std::byte, 16> heartbeat{};
        const std::array<std::byte, kMessageBytes> message{};
        const std::array<port::ConstBytes, 1> pieces{port::ConstBytes(message)};
        for (std::size_t i = 0; i < std::min(peers_per_beat_, links_.size()); ++i) {
            port::Link& link = *links_[next_++ % links_.size()];
            link.send_datagram(heartbeat);
            link.write(port::Lane::eager, pieces);
        }
    }

    sim::Carrier* carrier_;
    std::size_t peers_per_beat_;
    TimePoint beat_at_;
    std::size_t next_ = 0;
    std::vector<port::Link*> links_;
    std::vector<std::unique_ptr<CountingSink>> sinks_;
    std::uint64_t heartbeats_ = 0;
};

struct Outcome {
    double speed = 0;       // virtual over real time
    double deliveries = 0;  // per second of real time
    std::uint64_t trace_hash = 0;
};

Outcome run(std::size_t nodes, std::size_t peers_per_beat, Duration time) {
    sim::World world(7);
    sim::FabricOptions options;
    options.weather.jitter = 200us;
    sim::Fabric fabric(world, options);
    std::vector<std::unique_ptr<Node>> all;
    for (std::size_t i = 0; i < nodes; ++i) {
        sim::Carrier& carrier = fabric.add_node(sim::Fabric::identity(i));
        for (std::size_t before = 0; before < i; ++before) {
            carrier.dial(sim::Fabric::identity(before).node);
        }
        all.push_back(
            std::make_unique<Node>(carrier, peers_per_beat, world.now() + 1s + i * kBeat / nodes));
    }
    world.run_for(1s);
    const double begin = cpu_seconds();
    world.run_for(time);
    const double took = cpu_seconds() - begin;
    std::uint64_t deliveries = 0;
    for (const auto& node : all) deliveries += node->heartbeats() + node->messages();
    return {.speed = std::chrono::duration<double>(time).count() / took,
            .deliveries = static_cast<double>(deliveries) / took,
            .trace_hash = world.trace_hash()};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Speed of simulated clusters against real time");
    std::string json;
    std::size_t nodes = 16;
    int seconds = 200;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    app.add_option("--nodes", nodes, "Number of nodes, each linked to all others")
        ->check(CLI::Range(2, 256));
    app.add_option("--seconds", seconds, "Virtual time to simulate")->check(CLI::Range(1, 100'000));
    CLI11_PARSE(app, argc, argv);

    bench::Report report(json);
    const Duration time = std::chrono::seconds(seconds);
    // The work is always the same and other load only adds time, so the fastest run counts.
    Outcome one = run(nodes, 1, time);
    bool replayed = true;
    for (int again = 0; again < 4; ++again) {
        const Outcome next = run(nodes, 1, time);
        replayed = replayed && next.trace_hash == one.trace_hash;
        one.speed = std::max(one.speed, next.speed);
    }
    const Outcome all = run(nodes, nodes - 1, time / 10);
    report.row("sim_speed_one_peer_per_beat", one.speed, "x");
    report.row("sim_speed_all_peers_per_beat", all.speed, "x");
    report.row("sim_deliveries_per_second", all.deliveries, "1/s");
    if (!replayed) {
        fmt::print(stderr, "sim_bench: the same seed gave a different trace\n");
        return 1;
    }
    if (one.speed < kLeastSpeed) {
        fmt::print(
            stderr,
            "sim_bench: ran at {:.0f} times real time, but at least {:.0f} times is required\n",
            one.speed, kLeastSpeed);
        return 1;
    }
    return report.finish() ? 0 : 1;
}
