// Shared-memory links between two processes, each pinned to a core of its own, through port::Link.
//
//   shm_bench                  all measurements
//   shm_bench --ring 1048576   with another ring size; --chunk sets the bytes per record

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "port/memory.hpp"
#include "support/shm_process.hpp"

namespace nexar::bench {

namespace {

using testing::Channel;
using testing::ChildProcess;
using testing::CountingSink;
using testing::ShmProcess;

struct Settings {
    shm::LinkOptions link{};
    int rounds = 20'000;
    std::uint64_t stream_bytes = std::uint64_t{4} << 30U;  // in all, per size
};

void pin(std::size_t core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    ::sched_setaffinity(0, sizeof cores, &cores);
}

double microseconds(Duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

bool write(ShmProcess& side, std::span<const std::byte> bytes) {
    const std::array<port::ConstBytes, 1> pieces{bytes};
    return side.link().write(port::Lane::eager, pieces);
}

void turn_until(ShmProcess& side, const CountingSink& sink, std::uint64_t count) {
    while (sink.count < count && !side.down()) side.turn();
}

void ping_pong(const Settings& settings, std::size_t bytes, bool sleeps) {
    const std::vector<std::byte> message(bytes, std::byte{7});
    const auto total = static_cast<std::uint64_t>(settings.rounds);
    const auto wait = [&](ShmProcess& side, const CountingSink& sink, std::uint64_t count) {
        if (!sleeps) return turn_until(side, sink, count);
        side.sleep_until([&] { return sink.count >= count || side.down(); });
    };
    ChildProcess child([&](Channel& channel) {
        pin(1);
        ShmProcess side(settings.link);
        CountingSink sink;
        if (!side.accept(channel)) return;
        side.link().receive(port::Lane::eager, sink);
        for (std::uint64_t i = 1; i <= total; ++i) {
            wait(side, sink, i * bytes);
            write(side, message);
        }
        side.sleep_until([&] { return side.down().has_value(); });
    });
    pin(0);
    ShmProcess side(settings.link);
    CountingSink sink;
    if (!side.invite(child.channel())) return;
    side.link().receive(port::Lane::eager, sink);
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(total));
    for (std::uint64_t i = 1; i <= total; ++i) {
        const TimePoint begin = side.now();
        write(side, message);
        wait(side, sink, i * bytes);
        times.push_back(microseconds(side.now() - begin) / 2);
    }
    side.link().close("done");
    side.sleep_until([&] { return side.down().has_value(); });
    std::ranges::sort(times);
    const auto at = [&](double part) {
        return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
    };
    fmt::print("{:>10} {:>10} {:>10.3f} {:>10.3f} {:>10.3f}\n", sleeps ? "asleep" : "spinning",
               bytes, at(0), at(0.5), at(0.99));
}

// Streams of `bytes`, one after the other, into memory that the receiver reuses. Small ones have
// two in flight, so that the next one opens while the last one ends.
void one_way(const Settings& settings, std::size_t bytes) {
    const std::uint64_t count = std::max<std::uint64_t>(4, settings.stream_bytes / bytes);
    ChildProcess child([&](Channel& channel) {
        pin(1);
        std::vector<std::byte> memory(bytes, std::byte{1});
        std::map<std::uint64_t, std::unique_ptr<port::MemorySink>> sinks;
        port::Link* link = nullptr;
        ShmProcess side(settings.link, [&](port::LinkEvent& event) {
            if (auto* up = std::get_if<port::Up>(&event.what)) link = up->link;
            if (auto* opened = std::get_if<port::Opened>(&event.what)) {
                auto& sink = sinks[opened->stream.value()];
                sink = std::make_unique<port::MemorySink>(port::Bytes(memory));
                link->receive(opened->stream, *sink);
                link->open_window(opened->stream);
            }
            if (auto* finished = std::get_if<port::Finished>(&event.what)) {
                sinks.erase(finished->stream.value());
            }
        });
        if (!side.accept(channel)) return;
        while (!side.down()) side.turn();
    });
    pin(0);
    const std::vector<std::byte> memory(bytes, std::byte{2});
    const std::array regions{port::ConstBytes(memory)};
    port::MemorySource source(regions);
    std::uint64_t released = 0;
    ShmProcess side(settings.link, [&](port::LinkEvent& event) {
        if (std::holds_alternative<port::Released>(event.what)) ++released;
    });
    if (!side.invite(child.channel())) return;
    // The time from one release to the next one: on a busy machine, the better half shows what the
    // link can do while both processes run.
    const std::uint64_t in_flight = bytes < (std::size_t{16} << 20U) ? 2 : 1;
    std::vector<double> rates;
    std::uint64_t sent = 0;
    std::uint64_t seen = 0;
    TimePoint last = side.now();
    while (released < count) {
        while (sent < count && sent - released < in_flight) {
            side.link().send(source, {});
            ++sent;
        }
        side.turn();
        if (released == seen) continue;
        const TimePoint now = side.now();
        const double seconds = std::chrono::duration<double>(now - last).count();
        rates.push_back(static_cast<double>((released - seen) * bytes) / seconds / 1e9);
        seen = released;
        last = now;
    }
    std::ranges::sort(rates);
    fmt::print("{:>10} {:>10} {:>10.2f} {:>10.2f} {:>10.2f}\n", "one way", bytes,
               rates[rates.size() * 3 / 4], rates[rates.size() / 2], rates[rates.size() / 4]);
    side.link().close("done");
    side.spin_until([&] { return side.down().has_value(); });
}

// What a driver pays per turn for links on which nothing happens.
void idle(const Settings& settings, std::size_t links) {
    const SteadyClock clock;
    const auto here = std::move(*shm::Carrier::open(settings.link));
    const auto there = std::move(*shm::Carrier::open(settings.link));
    for (std::size_t i = 0; i < links; ++i) {
        const auto invitation = here->invite(clock.now(), Identity{});
        if (!invitation || !there->accept(clock.now(), Identity{}, invitation->bytes)) return;
    }
    std::size_t up = 0;
    while (up < 2 * links) {
        for (shm::Carrier* carrier : {here.get(), there.get()}) {
            carrier->on_ready(clock.now());
            carrier->flush(clock.now());
            while (carrier->poll_event()) ++up;
        }
    }
    constexpr int kTurns = 100'000;
    const TimePoint begin = clock.now();
    for (int i = 0; i < kTurns; ++i) here->on_ready(begin);
    const double polled = microseconds(clock.now() - begin) * 1'000 / kTurns;
    const TimePoint again = clock.now();
    for (int i = 0; i < kTurns; ++i) {
        here->fall_asleep();
        here->wake_up();
    }
    const double slept = microseconds(clock.now() - again) * 1'000 / kTurns;
    fmt::print("{:>10} {:>10} {:>10.1f} {:>10.1f}\n", "", links, polled, slept);
}

int run(int argc, char** argv) {
    Settings settings;
    CLI::App app("Measures shared-memory links between two processes");
    app.add_option("--ring", settings.link.ring_bytes, "bytes of each ring");
    app.add_option("--chunk", settings.link.chunk_bytes, "bytes of a stream in one record");
    app.add_option("--rounds", settings.rounds, "messages of each ping-pong");
    app.add_option("--bytes", settings.stream_bytes, "bytes sent per stream size");
    CLI11_PARSE(app, argc, argv);
    fmt::print("half a round trip in us:\n{:>10} {:>10} {:>10} {:>10} {:>10}\n", "driver", "bytes",
               "least", "p50", "p99");
    for (const std::size_t bytes : {8U, 1024U, 16384U, 65536U}) ping_pong(settings, bytes, false);
    ping_pong(settings, 8, true);
    fmt::print("GB/s:\n{:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "bytes", "p75", "p50", "p25");
    for (const std::size_t bytes : {std::size_t{1} << 20U, std::size_t{64} << 20U}) {
        one_way(settings, bytes);
    }
    fmt::print("idle links, ns:\n{:>10} {:>10} {:>10} {:>10}\n", "", "links", "on_ready", "sleep");
    for (const std::size_t links : {1U, 7U, 127U}) idle(settings, links);
    return 0;
}

}  // namespace

}  // namespace nexar::bench

int main(int argc, char** argv) {
    return nexar::bench::run(argc, argv);
}
