/// Measures what a tunnel that two members saturate leaves of the links of the member that relays
/// it: the share of the relay's own traffic, and the times of small messages meanwhile.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nexar/error.hpp>
#include <string>
#include <vector>

#include "link/timing.hpp"
#include "relay_load.hpp"
#include "report.hpp"

namespace nexar::bench {
namespace {

constexpr double kHalf = 50;           // percent
constexpr double kHeartbeatTime = 50;  // ms

/// Nothing if too little time was given for a single round trip.
void report_round_trips(Report& report, const std::string& name, const std::vector<double>& times) {
    if (times.empty()) return;
    report.row(name + "_p50_ms", quantile(times, 0.5), "ms");
    report.row(name + "_p99_ms", quantile(times, 0.99), "ms", kHeartbeatTime);
}

void report_load(Report& report, const RelayLoad& load) {
    constexpr double kMega = 1e6;
    report.row("relay_tunnel_alone_mb_per_s", load.relayed_alone / kMega, "MB/s");
    report.row("relay_own_alone_mb_per_s", load.own_alone / kMega, "MB/s");
    report.row("relay_tunnel_mb_per_s", load.relayed / kMega, "MB/s");
    report.row("relay_own_mb_per_s", load.own / kMega, "MB/s");
    report.row("relay_own_kept_percent", 100 * load.own / load.own_alone, "%");
    const double share = 100 * load.own / (load.own + load.relayed);
    report.row("relay_own_share_percent", share, "%");
    report.row("relay_tunnel_share_percent", 100 - share, "%", kHalf);
    report_round_trips(report, "relay_heartbeat", load.own_round_trips);
    report_round_trips(report, "relay_tunnel_heartbeat", load.relayed_round_trips);
}

int run(int argc, char** argv) {
    CLI::App app{
        "Measures how much of its link a relay keeps while two others saturate their tunnel. Needs "
        "root, for network namespaces."};
    std::string json_path;
    RelayLoadOptions options;
    app.add_option("--json", json_path,
                   "Also write the rows to this file, one JSON object per line");
    app.add_option("--rate", options.rate, "Limit of each link, as tc writes it");
    app.add_option("--mtu", options.mtu, "Of each link")->check(CLI::Range(1300, 65'000));
    app.add_option("--seconds", options.seconds, "Of each of the three phases")
        ->check(CLI::Range(0.1, 3600.0));
    CLI11_PARSE(app, argc, argv);
    Report report(json_path);
    report_load(report, measure_relay_load(options));
    return report.finish() && report.all_ok() ? 0 : 1;
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) try {
    return nexar::bench::run(argc, argv);
} catch (const nexar::Error& error) {
    const bool forbidden = error.code() == nexar::Errc::unsupported;
    std::fprintf(stderr, "relay_bench: %s%s\n", error.what(),
                 forbidden ? "; relay_bench creates network namespaces, so run it as root" : "");
    return 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "relay_bench: %s\n", error.what());
    return 1;
}
