// Four threads that send at the same time, compared with one.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <vector>

#include "api_pair.hpp"
#include "groups.hpp"

namespace nexar::bench {

namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kWindow = 64;  // operations in flight per thread
constexpr std::uint64_t kTag = 4;

/// The client's request to the server; 0 threads: leave.
struct ThreadsOrder {
    std::size_t threads = 0;
    std::size_t messages_each = 0;
};

/// One communicator per thread, created in the same order on both sides.
std::vector<Communicator> communicators(Communicator& world) {
    std::vector<Communicator> made;
    made.reserve(kThreads);
    for (std::size_t i = 0; i < kThreads; ++i) made.push_back(world.duplicate());
    return made;
}

/// Starts `messages` operations, with at most a window of them in flight.
template <class T, class Start>
void stream(std::size_t messages, Start&& start) {
    std::array<Work<T>, kWindow> works;
    for (std::size_t i = 0; i < messages; ++i) {
        Work<T>& oldest = works[i % kWindow];
        if (oldest.valid()) oldest.wait();
        oldest = start(i);
    }
    for (Work<T>& work : works) {
        if (work.valid()) work.wait();
    }
}

void send_all(Communicator& to_server, std::size_t messages) {
    std::array<std::uint64_t, kWindow> values{};
    stream<void>(messages, [&](std::size_t i) {
        values[i % kWindow] = i;
        return to_server.send(std::span(&values[i % kWindow], 1), 0, kTag);
    });
}

void receive_all(Communicator& from_client, std::size_t messages) {
    std::array<std::uint64_t, kWindow> values{};
    std::uint64_t sum = 0;
    stream<Status>(messages, [&](std::size_t i) {
        if (i >= kWindow) sum += values[i % kWindow];
        return from_client.recv(std::span(&values[i % kWindow], 1), 1, kTag);
    });
    const std::size_t last = std::min(messages, kWindow);
    for (std::size_t i = messages - last; i < messages; ++i) sum += values[i % kWindow];
    if (sum != messages * (messages - 1) / 2)
        throw Error(Errc::malformed, "the server received wrong messages");
}

template <class Part>
void in_threads(std::vector<Communicator>& own, const ThreadsOrder& order, Part part) {
    std::vector<std::future<void>> threads;
    threads.reserve(order.threads);
    for (std::size_t i = 0; i < order.threads; ++i) {
        threads.push_back(
            std::async(std::launch::async, part, std::ref(own[i]), order.messages_each));
    }
    for (auto& thread : threads) thread.get();
}

void serve(const Node& node, Control& client) {
    Communicator world = node.world();
    auto own = communicators(world);
    for (;;) {
        const auto order = client.receive<ThreadsOrder>(std::chrono::seconds(60));
        if (order.threads == 0) return;
        client.send(Ready{});
        in_threads(own, order, receive_all);
        client.send(Outcome{.finished_at = seconds_now()});
    }
}

/// Messages per second of all threads together.
double rate(std::vector<Communicator>& own, Control& server, const ThreadsOrder& order) {
    server.send(order);
    server.receive<Ready>();
    const double start = seconds_now();
    in_threads(own, order, send_all);
    const double finished = server.receive<Outcome>(std::chrono::seconds(60)).finished_at;
    return static_cast<double>(order.threads * order.messages_each) / (finished - start);
}

}  // namespace

void bench_api_threads(Trials& /*trials*/, Report& report, const GroupOptions& options) {
    constexpr std::size_t kCalibration = 20'000;
    std::vector<double> one;
    std::vector<double> four;
    const auto measure = [&](const Node& node, Control& server) {
        Communicator world = node.world();
        auto own = communicators(world);
        rate(own, server, {.threads = 1, .messages_each = kCalibration});
        const double about = rate(own, server, {.threads = 1, .messages_each = kCalibration});
        const auto messages = static_cast<std::size_t>(std::ceil(about * options.seconds));
        for (int repetition = 0; repetition < options.repetitions; ++repetition) {
            one.push_back(rate(own, server, {.threads = 1, .messages_each = messages}));
            four.push_back(
                rate(own, server, {.threads = kThreads, .messages_each = messages / kThreads}));
        }
        server.send(ThreadsOrder{});
    };
    const Cores cores = two_cores();
    run_api_pair({.server = serve,
                  .client = measure,
                  .server_core = cores.second,
                  .client_core = cores.first});
    fmt::print("\nMessages of 8 bytes in one direction, {} in flight per thread and communicator\n",
               kWindow);
    figure(report, "one_thread_messages_per_s", one, "1/s", "");
    figure(report, "four_threads_messages_per_s", four, "1/s", "");
    figure(report, "four_threads_over_one", ratios(four, one), "ratio", "required >= 0.9");
    std::fflush(stdout);
}

}  // namespace nexar::bench
