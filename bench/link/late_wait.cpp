// A message that is transferred while both callers compute.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "api_pair.hpp"
#include "groups.hpp"

namespace nexar::bench {

namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20U;
constexpr std::uint64_t kTag = 5;

// Both callers compute on one core and leave the other core to nexar's threads, which are created
// on it. The transfer time with immediate waits is measured on that core as well.

/// The client's order for both sides. With a compute time of 0 they wait at once.
struct LateOrder {
    bool leave = false;
    double compute_seconds = 0;
    std::uint64_t salt = 0;  // makes the content different each time
};

struct LateOutcome {
    double ended_at = 0;
    double waited = 0;  // seconds
};

void compute_until(double end) {
    volatile double value = 1;
    while (seconds_now() < end) {
        for (int i = 0; i < 1000; ++i) value = value * 1.0000001;
    }
}

/// One side's message, from its start to the end of its wait.
template <class Start>
LateOutcome compute_and_wait(const LateOrder& order, const Cores& cores, Start&& start) {
    if (order.compute_seconds > 0) pin_thread(cores.first);
    const double began = seconds_now();
    auto work = start();
    if (order.compute_seconds > 0) compute_until(began + order.compute_seconds);
    const double computed = seconds_now();
    work.wait();
    const double ended = seconds_now();
    pin_thread(cores.second);
    return {.ended_at = ended, .waited = ended - computed};
}

void serve(const Node& node, Control& client) {
    Communicator world = node.world();
    std::vector<std::uint64_t> message(kBytes / sizeof(std::uint64_t));
    for (;;) {
        const auto order = client.receive<LateOrder>();
        if (order.leave) return;
        std::ranges::fill(message, 0);
        client.send(Ready{});
        const LateOutcome outcome = compute_and_wait(
            order, two_cores(), [&] { return world.recv(std::span(message), 1, kTag); });
        for (std::size_t i = 0; i < message.size(); ++i) {
            if (message[i] != i * order.salt)
                throw Error(Errc::malformed, "the server received wrong bytes");
        }
        client.send(outcome);
    }
}

/// The client's side of the measurement.
class LateWaits {
public:
    LateWaits(Communicator& world, Control& server) : world_(&world), server_(&server) {}

    /// Seconds until the message was complete on both sides.
    double transfer() {
        const double start = go(0);
        return std::max(own_.ended_at, theirs_.ended_at) - start;
    }

    /// How long the slower side waited after it had computed, in seconds.
    double late_wait(double compute_seconds) {
        go(compute_seconds);
        return std::max(own_.waited, theirs_.waited);
    }

private:
    double go(double compute_seconds) {
        const LateOrder order{.compute_seconds = compute_seconds, .salt = ++salt_};
        for (std::size_t i = 0; i < message_.size(); ++i) message_[i] = i * order.salt;
        server_->send(order);
        server_->receive<Ready>();
        const double start = seconds_now();
        own_ = compute_and_wait(order, two_cores(),
                                [&] { return world_->send(std::span(message_), 0, kTag); });
        theirs_ = server_->receive<LateOutcome>();
        return start;
    }

    Communicator* world_;
    Control* server_;
    std::vector<std::uint64_t> message_ =
        std::vector<std::uint64_t>(kBytes / sizeof(std::uint64_t));
    std::uint64_t salt_ = 0;
    LateOutcome own_{};
    LateOutcome theirs_{};
};

}  // namespace

void bench_late_wait(Trials& /*trials*/, Report& report, const GroupOptions& options) {
    constexpr double kMilli = 1e3;
    std::vector<double> transfers;
    std::vector<double> waits;
    const auto measure = [&](const Node& node, Control& server) {
        Communicator world = node.world();
        LateWaits late(world, server);
        late.transfer();
        for (int repetition = 0; repetition < options.repetitions; ++repetition) {
            const double transfer = late.transfer();
            transfers.push_back(transfer * kMilli);
            waits.push_back(late.late_wait(2 * transfer) * kMilli);
        }
        server.send(LateOrder{.leave = true});
    };
    const std::size_t free_core = two_cores().second;
    run_api_pair(
        {.server = serve, .client = measure, .server_core = free_core, .client_core = free_core});
    fmt::print(
        "\nA message of 64 MiB on one core, while both callers compute on the other core for twice "
        "the transfer time\n");
    figure(report, "transfer_64m_ms", transfers, "ms", "");
    figure(report, "late_wait_64m_ms", waits, "ms", "");
    figure(report, "late_wait_over_transfer", ratios(waits, transfers), "ratio", "required <= 0.1");
    std::fflush(stdout);
}

}  // namespace nexar::bench
