#include <fmt/format.h>

#include "groups.hpp"

namespace nexar::bench {

namespace {

NamedContender losing(std::string name, double loss, std::uint64_t seed) {
    Contender how{.transport = Transport::quic};
    how.largest_datagram = 8952;
    how.lossy = true;
    how.loss = loss;
    how.loss_seed = seed;
    return {.name = std::move(name), .how = how};
}

}  // namespace

void bench_loss(Trials& trials, Report& report, const GroupOptions& options) {
    fmt::print("\nThe same with datagrams of 8952 bytes and random loss on both sides, seed {}\n",
               options.seed);
    const auto series = measure_bulk(
        trials,
        {losing("quic_lossless", 0, options.seed), losing("quic_loss_0p1", 0.001, options.seed),
         losing("quic_loss_1", 0.01, options.seed)},
        options);
    print_bulk(report, series);
    fmt::print("\n");
    const std::vector<double> lossless = series[0].rates();
    figure(report, "loss_0p1_over_lossless", ratios(series[1].rates(), lossless), "ratio",
           "required >= 0.9");
    figure(report, "loss_1_over_lossless", ratios(series[2].rates(), lossless), "ratio",
           "required >= 0.75");
}

}  // namespace nexar::bench
