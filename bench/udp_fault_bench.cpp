#include <netinet/udp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"
#include "support/udp_fault/proxy.hpp"

/// Measures how many datagrams the fault proxy forwards and the cost of each. This thread sends and
/// receives on one core; the proxy's thread has the other. The kernel splits what this thread sends
/// into datagrams (UDP_SEGMENT), so that the proxy is the bottleneck.
namespace {

using namespace nexar::udp_fault;
using namespace std::chrono_literals;

constexpr int kPayload = 1200;
constexpr std::size_t kSegments = 48;  // per send call; the kernel's limit is 64
// Datagrams in flight to the proxy: fewer than its receive buffer holds under any system limit.
constexpr std::uint64_t kWindow = 768;
constexpr int kRounds = 7;

struct Figures {
    double packets_per_s = 0;
    double cpu_us_per_packet = 0;
};

double seconds_on(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The CPU time of the proxy: that of the process without this thread.
double proxy_cpu_seconds() {
    return seconds_on(CLOCK_PROCESS_CPUTIME_ID) - seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

class Bench {
public:
    explicit Bench(const FaultOptions& faults)
        : sink_(UdpSocket::bind(Address::loopback_v4()).value()),
          source_(UdpSocket::bind(Address::loopback_v4()).value()),
          proxy_(Proxy::start(options(faults, sink_.local())).value()),
          payload_(kPayload * kSegments) {
        for (std::size_t i = 0; i < payload_.size(); ++i) {
            payload_[i] = static_cast<std::byte>(i * 31 % 251);
        }
        if (::setsockopt(source_.descriptor(), SOL_UDP, UDP_SEGMENT, &kPayload, sizeof kPayload)) {
            throw system_failure("make the kernel split datagrams (UDP_SEGMENT, Linux 4.18)");
        }
    }

    Figures round(double seconds) {
        const double begin = seconds_on(CLOCK_MONOTONIC);
        const double cpu_begin = proxy_cpu_seconds();
        const std::uint64_t received_begin = proxy_.traffic(Direction::to_target).received;
        std::uint64_t arrived = 0;
        while (seconds_on(CLOCK_MONOTONIC) - begin < seconds) {
            if (has_room()) send();
            while (sink_.receive(batch_)) arrived += batch_.parcels().size();
        }
        const double took = seconds_on(CLOCK_MONOTONIC) - begin;
        const std::uint64_t received =
            proxy_.traffic(Direction::to_target).received - received_begin;
        return {.packets_per_s = static_cast<double>(arrived) / took,
                .cpu_us_per_packet =
                    (proxy_cpu_seconds() - cpu_begin) * 1e6 / static_cast<double>(received)};
    }

    /// Datagrams that the kernel dropped. If there are any, the window is too large and the figures
    /// are wrong.
    std::uint64_t missed() const {
        return proxy_.traffic(Direction::to_target).missed + sink_.missed();
    }

private:
    static ProxyOptions options(const FaultOptions& faults, const Address& target) {
        ProxyOptions options;
        options.target = target;
        options.to_target = faults;
        return options;
    }

    /// Asks the proxy only when the window looks full, because that takes the proxy's lock.
    bool has_room() {
        if (sent_ - taken_ < kWindow) return true;
        taken_ = proxy_.traffic(Direction::to_target).received;
        return sent_ - taken_ < kWindow;
    }

    void send() {
        const Parcel parcel{.bytes = payload_, .peer = proxy_.address(), .ecn = 0};
        if (source_.send({&parcel, 1}) == 1) sent_ += kSegments;
    }

    UdpSocket sink_;
    UdpSocket source_;
    Proxy proxy_;
    ReceiveBatch batch_;
    std::vector<std::byte> payload_;
    std::uint64_t sent_ = 0;
    std::uint64_t taken_ = 0;
};

FaultOptions everything() {
    FaultOptions faults;
    faults.drop.probability = 0.01;
    faults.burst = {.start = 0.001, .shortest = 1, .longest = 3};
    faults.duplicate = 0.01;
    faults.reorder = {.probability = 0.01, .packets = 3, .at_most = 5ms};
    faults.delay = 5ms;
    faults.jitter = 1ms;
    faults.corrupt.probability = 0.01;
    faults.truncate = 0.01;
    return faults;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Alternates the rounds of both configurations, so that other load affects both.
void measure(nexar::bench::Report& report, double seconds) {
    std::array<Bench, 2> benches = {Bench({}), Bench(everything())};
    std::array<std::vector<double>, 2> rates;
    std::array<std::vector<double>, 2> costs;
    for (Bench& bench : benches) bench.round(seconds / 4);  // warms up
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < benches.size(); ++i) {
            const Figures figures = benches[i].round(seconds);
            rates[i].push_back(figures.packets_per_s);
            costs[i].push_back(figures.cpu_us_per_packet);
        }
    }
    report.row("udp_fault_packets_per_s", median(rates[0]), "1/s");
    report.row("udp_fault_cpu_us_per_packet", median(costs[0]), "us");
    report.row("udp_fault_impaired_packets_per_s", median(rates[1]), "1/s");
    report.row("udp_fault_impaired_cpu_us_per_packet", median(costs[1]), "us");
    for (const Bench& bench : benches) {
        if (bench.missed() == 0) continue;
        std::fprintf(
            stderr,
            "udp_fault_bench: the kernel dropped %llu datagrams, so the figures are wrong\n",
            static_cast<unsigned long long>(bench.missed()));
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Speed of the UDP fault proxy, 1200-byte datagrams over loopback");
    std::string json;
    double seconds = 0.5;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    app.add_option("--seconds", seconds, "Length of each round")->check(CLI::Range(0.01, 60.0));
    CLI11_PARSE(app, argc, argv);
    try {
        nexar::bench::Report report(json);
        measure(report, seconds);
        return report.finish() ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "udp_fault_bench: %s\n", error.what());
        return 1;
    }
}
