#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"
#include "timing.hpp"
#include "trials.hpp"

namespace nexar::bench {

struct GroupOptions {
    int repetitions = 7;
    double seconds = 0.6;  // per repetition
    std::uint64_t seed = 0;
};

// Each of these measures its contenders in turn, A B C A B C ..., and adds its rows.

/// Bulk throughput by transport, datagram size, offload and protection.
void bench_throughput(Trials& trials, Report& report, const GroupOptions& options);
/// The same with random loss of datagrams.
void bench_loss(Trials& trials, Report& report, const GroupOptions& options);
/// Requests, one at a time, on an idle connection.
void bench_pingpong(Trials& trials, Report& report, const GroupOptions& options);
/// Requests while bulk messages fill the connection.
void bench_small_under_bulk(Trials& trials, Report& report, const GroupOptions& options);
void bench_handshakes(Trials& trials, Report& report, const GroupOptions& options);
/// The public API compared with the link below it.
void bench_api_pingpong(Trials& trials, Report& report, const GroupOptions& options);
void bench_api_stream(Trials& trials, Report& report, const GroupOptions& options);
/// The public API alone: four threads compared with one, and late waits.
void bench_api_threads(Trials& trials, Report& report, const GroupOptions& options);
void bench_late_wait(Trials& trials, Report& report, const GroupOptions& options);
/// Remote procedure calls compared with messages.
void bench_rpc(Trials& trials, Report& report, const GroupOptions& options);

/// GB/s of AES-128-GCM by libcrypto on one core, 64 KB at a time with one context, over `seconds`.
double aes_gb_per_s(double seconds);

/// "2.31 (2.20..2.40)"
std::string text_of(const Spread& spread);

/// Prints the figure with its spread and the requirement `bar`, and adds the median as a row.
void figure(Report& report, std::string_view name, const std::vector<double>& samples,
            std::string_view unit, std::string_view bar);

/// The repetitions of one contender's bulk transfer.
struct BulkSeries {
    std::string name{};
    std::vector<BulkTrial> trials{};

    std::vector<double> rates() const;  // GB/s
};

/// Measures the contenders in turn, `options.repetitions` times; calls `between` once per round.
std::vector<BulkSeries> measure_bulk(Trials& trials, const std::vector<NamedContender>& contenders,
                                     const GroupOptions& options,
                                     const std::function<void()>& between = {});

/// Prints a table and adds the rows NAME_gb_per_s, NAME_client_cpu_s_per_gb and
/// NAME_server_cpu_s_per_gb.
void print_bulk(Report& report, const std::vector<BulkSeries>& series);

}  // namespace nexar::bench
