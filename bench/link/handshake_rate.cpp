#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "groups.hpp"

namespace nexar::bench {

void bench_handshakes(Trials& trials, Report& report, const GroupOptions& options) {
    constexpr std::size_t kCalibration = 20;
    const auto total = [](const std::vector<double>& times) {
        return std::accumulate(times.begin(), times.end(), 0.0);
    };
    fmt::print(
        "\nFull mutual TLS handshakes, one after the other, from dial to Up, without the limits "
        "for "
        "strangers\n");
    const double each = total(trials.handshakes(kCalibration)) / kCalibration;
    const auto count = std::max(kCalibration, static_cast<std::size_t>(options.seconds / each));
    std::vector<double> rates;
    std::vector<double> p50_us;
    std::vector<double> p99_us;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        const auto times = trials.handshakes(count);
        rates.push_back(static_cast<double>(count) / total(times));
        p50_us.push_back(quantile(times, 0.50) * 1e6);
        p99_us.push_back(quantile(times, 0.99) * 1e6);
    }
    figure(report, "handshakes_per_s", rates, "1/s", "");
    figure(report, "handshake_p50_us", p50_us, "us", "");
    figure(report, "handshake_p99_us", p99_us, "us", "");
}

}  // namespace nexar::bench
