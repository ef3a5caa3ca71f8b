#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "groups.hpp"

namespace nexar::bench {

namespace {

constexpr double kMicro = 1e6;

/// One contender and the results of its repetitions, in microseconds.
struct PingSeries {
    std::string name{};
    Contender how{};
    std::vector<double> p50{};
    std::vector<double> p99{};
};

std::vector<PingSeries> contenders() {
    constexpr std::array kTransports{std::pair{"tcp", Transport::tcp},
                                     std::pair{"tls_tcp", Transport::tls},
                                     std::pair{"quic", Transport::quic}};
    std::vector<PingSeries> series;
    for (const auto& [name, transport] : kTransports) {
        series.push_back({.name = fmt::format("{}_sleep", name),
                          .how = {.transport = transport, .waiting = Waiting::sleeping}});
        series.push_back({.name = fmt::format("{}_spin", name),
                          .how = {.transport = transport, .waiting = Waiting::spinning}});
    }
    return series;
}

std::vector<PingSeries> measure(Trials& trials, const GroupOptions& options, std::size_t bytes) {
    auto all = contenders();
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        for (PingSeries& one : all) {
            const auto times =
                trials.ping(one.how, {.bytes = bytes, .seconds = options.seconds / 3});
            one.p50.push_back(quantile(times, 0.50) * kMicro);
            one.p99.push_back(quantile(times, 0.99) * kMicro);
        }
    }
    return all;
}

}  // namespace

void bench_pingpong(Trials& trials, Report& report, const GroupOptions& options) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}}) {
        fmt::print("\nRequests of {} bytes and their echoes, one at a time, in us\n", bytes);
        fmt::print("{:<20} {:<26} {:<26}\n", "", "p50 (least..most)", "p99 (least..most)");
        const auto all = measure(trials, options, bytes);
        for (const PingSeries& one : all) {
            fmt::print("{:<20} {:<26} {:<26}\n", one.name, text_of(spread_of(one.p50)),
                       text_of(spread_of(one.p99)));
            const std::string row = fmt::format("pingpong_{}_{}b", one.name, bytes);
            report.keep(row + "_p50_us", spread_of(one.p50).median, "us");
            report.keep(row + "_p99_us", spread_of(one.p99).median, "us");
        }
        if (bytes != 8) continue;
        const auto p50_of = [&](std::string_view name) {
            return std::ranges::find(all, name, &PingSeries::name)->p50;
        };
        fmt::print("\n");
        figure(report, "pingpong_spin_over_tcp", ratios(p50_of("quic_spin"), p50_of("tcp_spin")),
               "ratio", "required <= 2.2, goal 1.7");
    }
    std::fflush(stdout);
}

}  // namespace nexar::bench
