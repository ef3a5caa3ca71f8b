#include <fmt/format.h>

#include "groups.hpp"

namespace nexar::bench {

namespace {

/// Bulk transfers alone and with requests at the same time, in turn.
struct SharedSeries {
    std::vector<double> alone{};  // GB/s
    std::vector<double> beside{};
    std::vector<double> p50_us{};
    std::vector<double> p99_us{};
};

SharedSeries measure(Trials& trials, const Contender& how, const GroupOptions& options) {
    constexpr double kMicro = 1e6;
    const std::size_t messages = trials.messages_for(how, options.seconds);
    SharedSeries series;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        series.alone.push_back(trials.bulk(how, messages).gb_per_s);
        const BulkTrial shared = trials.bulk_with_requests(how, messages, {});
        series.beside.push_back(shared.gb_per_s);
        series.p50_us.push_back(quantile(shared.request_times, 0.50) * kMicro);
        series.p99_us.push_back(quantile(shared.request_times, 0.99) * kMicro);
    }
    return series;
}

}  // namespace

void bench_small_under_bulk(Trials& trials, Report& report, const GroupOptions& options) {
    fmt::print(
        "\nRequests of 64 bytes every 500 us during bulk messages in the same direction, timed "
        "from "
        "when they were due\n");
    for (const std::size_t datagram : {std::size_t{65000}, std::size_t{8952}}) {
        Contender how{.transport = Transport::quic};
        how.largest_datagram = datagram;
        const SharedSeries series = measure(trials, how, options);
        const std::string suffix = datagram == 8952 ? "_8952" : "";
        fmt::print("datagrams of up to {} bytes: {} GB/s alone, {} GB/s with requests\n", datagram,
                   text_of(spread_of(series.alone)), text_of(spread_of(series.beside)));
        figure(report, "small_p50_us_under_bulk" + suffix, series.p50_us, "us", "");
        figure(report, "small_p99_us_under_bulk" + suffix, series.p99_us, "us", "required <= 250");
        figure(report, "bulk_rate_kept" + suffix, ratios(series.beside, series.alone), "ratio",
               "required >= 0.85");
    }
}

}  // namespace nexar::bench
