// Measures the reduce kernels against memory bandwidth, scalar code and each other.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "compute/targets.hpp"
#include "reduce_bench.hpp"

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app("Speed of nexar's reduce kernels on one core");
    std::string json_path;
    bool quick = false;
    app.add_option("--json", json_path,
                   "Also write the rows to this file, one JSON object per line");
    app.add_flag("--quick", quick, "Measure roughly, within ten seconds");
    CLI11_PARSE(app, argc, argv);

    fmt::print("kernels for {}\n", nexar::compute::kernel_target());
    Report report(json_path);
    const bool memory_right = bench_memory(
        report, {.repetitions = quick ? 5 : 15, .seconds_per_repetition = quick ? 0.02 : 0.05});
    const bool integers_right = bench_integers(
        report, {.repetitions = quick ? 5 : 15, .seconds_per_repetition = quick ? 5e-4 : 2e-3});
    const bool edges_right = bench_edges(
        report, {.repetitions = quick ? 5 : 15, .seconds_per_repetition = quick ? 2e-3 : 1e-2});
    const bool written = report.finish();
    return memory_right && integers_right && edges_right && written ? 0 : 1;
}
