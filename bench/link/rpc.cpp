// Remote procedure calls compared with messages between the same two processes.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <nexar/node.hpp>
#include <vector>

#include "api_pair.hpp"
#include "groups.hpp"

namespace nexar::bench {

namespace {

constexpr std::uint64_t kPing = 6;

enum class RpcPhase : std::uint8_t { echo, calls, leave };

std::uint64_t same(std::uint64_t value) {
    return value;
}

void serve(const Node& node, Control& client) {
    Communicator world = node.world();
    FunctionOptions inlined;
    inlined.executor = inline_executor();
    const Served pooled = node.serve("same", same);
    const Served quick = node.serve("same inline", same, inlined);
    for (;;) {
        const auto phase = client.receive<RpcPhase>();
        if (phase == RpcPhase::leave) return;
        client.send(Ready{});
        if (phase == RpcPhase::calls) continue;
        std::array<std::uint64_t, 1> message{};
        do {
            world.recv(std::span(message), 1, kPing).wait();
            world.send(std::span(message), 1, kPing).wait();
        } while (message[0] != static_cast<std::uint64_t>(kLastOne));
    }
}

/// Measures calls and messages from the client's side.
class Calls {
public:
    Calls(const Node& node, Control& server, double seconds)
        : node_(&node), server_(&server), seconds_(seconds) {}

    double ping_p50() {
        Communicator world = node_->world();
        begin(RpcPhase::echo);
        return p50([&](std::uint64_t value) {
            std::array<std::uint64_t, 1> message{value};
            world.send(std::span(message), 0, kPing).wait();
            world.recv(std::span(message), 0, kPing).wait();
            return message[0];
        });
    }

    double call_p50(const FunctionName& name) {
        begin(RpcPhase::calls);
        return p50(
            [&](std::uint64_t value) { return node_->call<std::uint64_t>(0, name, value).wait(); });
    }

private:
    void begin(RpcPhase phase) {
        server_->send(phase);
        server_->receive<Ready>();
    }

    template <class Exchange>
    double p50(Exchange exchange) {
        const auto times = time_requests(seconds_, [&](std::byte mark) {
            const auto sent = static_cast<std::uint64_t>(mark);
            if (exchange(sent) != sent)
                throw Error(Errc::malformed, "the response does not match the request");
        });
        constexpr double kMicro = 1e6;
        return quantile(times, 0.5) * kMicro;
    }

    const Node* node_;
    Control* server_;
    double seconds_;
};

}  // namespace

void bench_rpc(Trials& /*trials*/, Report& report, const GroupOptions& options) {
    std::vector<double> pings;
    std::vector<double> pooled;
    std::vector<double> inlined;
    const auto measure = [&](const Node& node, Control& server) {
        Calls calls(node, server, options.seconds / 3);
        calls.call_p50("same");
        for (int repetition = 0; repetition < options.repetitions; ++repetition) {
            pings.push_back(calls.ping_p50());
            pooled.push_back(calls.call_p50("same"));
            inlined.push_back(calls.call_p50("same inline"));
        }
        server.send(RpcPhase::leave);
    };
    run_api_pair({.server = serve,
                  .client = measure,
                  .server_core = two_cores().second,
                  .client_core = two_cores().first});
    fmt::print(
        "\nCalls with 8 bytes in each direction, one at a time, compared with a message and its "
        "echo\n");
    figure(report, "rpc_pingpong_8b_p50_us", pings, "us", "");
    figure(report, "rpc_roundtrip_8b_p50_us", pooled, "us", "");
    figure(report, "rpc_roundtrip_inline_8b_p50_us", inlined, "us", "");
    figure(report, "rpc_roundtrip_over_pingpong", ratios(pooled, pings), "ratio",
           "required <= 1.6");
    figure(report, "rpc_inline_over_pingpong", ratios(inlined, pings), "ratio", "");
    std::fflush(stdout);
}

}  // namespace nexar::bench
