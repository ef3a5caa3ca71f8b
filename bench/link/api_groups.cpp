#include <fmt/format.h>

#include <cstdio>

#include "groups.hpp"

namespace nexar::bench {

namespace {

constexpr double kMicro = 1e6;

}  // namespace

void bench_api_pingpong(Trials& trials, Report& report, const GroupOptions& options) {
    const Contender link{.transport = Transport::quic, .waiting = Waiting::spinning};
    const Contender api{.transport = Transport::api, .waiting = Waiting::sleeping};
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}}) {
        std::vector<double> link_p50;
        std::vector<double> api_p50;
        for (int repetition = 0; repetition < options.repetitions; ++repetition) {
            const PingPlan plan{.bytes = bytes, .seconds = options.seconds / 2};
            link_p50.push_back(quantile(trials.ping(link, plan), 0.5) * kMicro);
            api_p50.push_back(quantile(trials.ping(api, plan), 0.5) * kMicro);
        }
        fmt::print("\nRequests of {} bytes and their echoes, one at a time\n", bytes);
        figure(report, fmt::format("link_pingpong_{}b_p50_us", bytes), link_p50, "us", "");
        figure(report, fmt::format("api_pingpong_{}b_p50_us", bytes), api_p50, "us", "");
        if (bytes == 8) {
            figure(report, "api_pingpong_over_link", ratios(api_p50, link_p50), "ratio",
                   "required <= 1.5");
        }
    }
}

void bench_api_stream(Trials& trials, Report& report, const GroupOptions& options) {
    const auto series = measure_bulk(trials,
                                     {{.name = "link", .how = {.transport = Transport::quic}},
                                      {.name = "api", .how = {.transport = Transport::api}}},
                                     options);
    fmt::print("\nMessages of 16 MiB in one direction, two in flight\n");
    print_bulk(report, series);
    figure(report, "api_stream_over_link", ratios(series[1].rates(), series[0].rates()), "ratio",
           "required >= 0.9");
    std::fflush(stdout);
}

}  // namespace nexar::bench
