#include <fmt/format.h>

#include "groups.hpp"

namespace nexar::bench {

namespace {

Contender quic_of(std::size_t largest_datagram) {
    Contender how{.transport = Transport::quic};
    how.largest_datagram = largest_datagram;
    return how;
}

/// In the order of Place.
std::vector<NamedContender> contenders() {
    Contender plain = quic_of(1452);
    plain.gso = plain.gro = plain.batched = false;
    Contender batched = quic_of(1452);
    batched.gso = batched.gro = false;
    Contender none = quic_of(65000);
    none.protection = quic::Protection::none;
    return {{"tcp", {.transport = Transport::tcp}},
            {"tls_tcp", {.transport = Transport::tls}},
            {"quic_1452", quic_of(1452)},
            {"quic_1452_sendmmsg", batched},
            {"quic_1452_plain", plain},
            {"quic_8952", quic_of(8952)},
            {"quic_max", quic_of(65000)},
            {"quic_max_none", none}};
}

enum Place : std::size_t {
    tcp,
    tls_tcp,
    quic_1452,
    quic_1452_sendmmsg,
    quic_1452_plain,
    quic_8952,
    quic_max,
    quic_max_none,
};

}  // namespace

void bench_throughput(Trials& trials, Report& report, const GroupOptions& options) {
    constexpr double kAesSeconds = 0.1;
    fmt::print("\nBulk messages of 16 MiB, 2 in flight, {} repetitions of {} s\n",
               options.repetitions, options.seconds);
    std::vector<double> aes;
    const auto series = measure_bulk(trials, contenders(), options,
                                     [&] { aes.push_back(aes_gb_per_s(kAesSeconds)); });
    print_bulk(report, series);
    fmt::print("{:<20} {}\n\n", "aes_128_gcm, 1 core", text_of(spread_of(aes)));
    report.keep("aes_128_gcm_gb_per_s", spread_of(aes).median, "GB/s");

    const auto over = [&](Place above, const std::vector<double>& below) {
        return ratios(series[above].rates(), below);
    };
    figure(report, "quic_max_over_tls_tcp", over(quic_max, series[tls_tcp].rates()), "ratio",
           "required >= 1.2, goal 1.5");
    figure(report, "quic_1452_over_tls_tcp", over(quic_1452, series[tls_tcp].rates()), "ratio",
           "required >= 0.50, goal 0.8");
    figure(report, "quic_1452_offload_gain", over(quic_1452, series[quic_1452_plain].rates()),
           "ratio", "required >= 2.5");
    figure(report, "quic_max_over_aes", over(quic_max, aes), "ratio",
           "required >= 0.45, goal 0.55");
    figure(report, "quic_none_over_tcp", over(quic_max_none, series[tcp].rates()), "ratio",
           "required >= 0.9, goal 1.2");
}

}  // namespace nexar::bench
