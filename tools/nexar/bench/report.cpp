#include "bench/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nexar/error.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/ceiling.hpp"

namespace nexar::bench {

namespace {

/// The layout shared by the head and the rows.
template <class... Cell>
void print_line(const Cell&... cells) {
    static_assert(sizeof...(Cell) == 14);
    fmt::print(
        "{:>12} {:>12} {:>6} {:>11} {:>5} {:>11} {:>8} {:>8} {:>7} {:>11} {:>11} {:>8} {:>7}  {}\n",
        cells...);
}

std::string micro(double seconds) {
    return fmt::format("{:.2f}", seconds * 1e6);
}

/// A figure that some operations do not have.
std::string positive(double figure, int digits) {
    return figure > 0 ? fmt::format("{:.{}f}", figure, digits) : "-";
}

std::string in_billions(double bandwidth) {
    return fmt::format("{:.3f}", bandwidth);
}

}  // namespace

Report::Report(const Plan& plan, std::uint32_t world, std::string protection, std::string links)
    : plan_(plan), world_(world), protection_(std::move(protection)), links_(std::move(links)) {
    if (!plan.json_path.empty()) {
        json_.open(plan.json_path);
        if (!json_) throw Error(Errc::bad_config, "cannot write " + plan.json_path);
    }
    print_head();
}

void Report::print_head() const {
    fmt::print("# nexar bench {}: {} {}, link {}, protection {}{}\n", plan_.subject.name(), world_,
               world_ == 1 ? "rank" : "ranks", links_, protection_,
               plan_.shared ? ", shared buffers" : "");
    if (plan_.format == Format::osu) {
        const bool streams = plan_.subject.kind == Subject::Kind::bandwidth;
        fmt::print("# Size      {}\n", streams ? "Bandwidth (MB/s)" : "Avg Latency(us)");
    } else {
        fmt::print(
            "# times in us, of the slowest rank; bandwidths in GB/s; cpu/GB in seconds, of all "
            "ranks\n#\n#");
        print_line("size", "count", "type", "redop", "root", "time(us)", "algbw", "busbw", "#wrong",
                   "p50", "p99", "cpu/GB", "%ceil", "algorithm");
    }
    (void)std::fflush(stdout);
}

void Report::print_row(const Measured& measured, double copy_rate) const {
    if (plan_.format == Format::osu) {
        const bool streams = plan_.subject.kind == Subject::Kind::bandwidth;
        fmt::print("{:<11} {:.2f}\n", measured.extent.bytes,
                   streams ? measured.algorithm_bandwidth() * 1e3 : measured.mean * 1e6);
        return;
    }
    const std::string_view type = measured.extent.count == 0 ? "none" : name(plan_.dtype);
    const std::string_view redop = plan_.subject.reduces() ? name(plan_.redop) : "none";
    const std::string root = plan_.subject.rooted() ? std::to_string(plan_.root) : "-1";
    fmt::print(" ");
    print_line(measured.extent.bytes, measured.extent.count, type, redop, root,
               micro(measured.mean), in_billions(measured.algorithm_bandwidth()),
               in_billions(measured.bus_bandwidth(plan_.subject, world_)),
               plan_.check ? std::to_string(measured.wrong) : "N/A", micro(measured.p50),
               micro(measured.p99), positive(measured.cpu_per_gigabyte(plan_.subject, world_), 3),
               positive(100 * part_of_ceiling(plan_.subject, world_, measured, copy_rate), 1),
               measured.algorithm);
}

void Report::write_json(const Measured& measured, double copy_rate) {
    const nlohmann::ordered_json row = {
        {"op", plan_.subject.name()},
        {"ranks", world_},
        {"bytes", measured.extent.bytes},
        {"count", measured.extent.count},
        {"type", name(plan_.dtype)},
        {"iterations", measured.iterations},
        {"mean_us", measured.mean * 1e6},
        {"p50_us", measured.p50 * 1e6},
        {"p99_us", measured.p99 * 1e6},
        {"algbw_GBps", measured.algorithm_bandwidth()},
        {"busbw_GBps", measured.bus_bandwidth(plan_.subject, world_)},
        {"wrong", measured.wrong},
        {"checked", plan_.check},
        {"algorithm", measured.algorithm},
        {"cpu_s_per_GB", measured.cpu_per_gigabyte(plan_.subject, world_)},
        {"copy_GBps", copy_rate * 1e-9},
        {"ceiling_percent", 100 * part_of_ceiling(plan_.subject, world_, measured, copy_rate)},
        {"memory", plan_.shared ? "shared" : "private"},
        {"link", links_},
        {"protection", protection_},
    };
    json_ << row.dump() << '\n' << std::flush;
}

void Report::row(const Measured& measured, double copy_rate) {
    ++rows_;
    wrong_ += measured.wrong;
    bus_bandwidths_ += measured.bus_bandwidth(plan_.subject, world_);
    print_row(measured, copy_rate);
    (void)std::fflush(stdout);  // a sweep takes long, and the user watches
    if (json_.is_open()) write_json(measured, copy_rate);
}

bool Report::finish() {
    if (plan_.format == Format::table) {
        if (plan_.check) {
            fmt::print("# Out of bounds values : {} {}\n", wrong_, wrong_ == 0 ? "OK" : "FAILED");
        }
        fmt::print("# Avg bus bandwidth    : {:.3f}\n",
                   rows_ == 0 ? 0.0 : bus_bandwidths_ / static_cast<double>(rows_));
    }
    if (wrong_ != 0) fmt::print(stderr, "nexar bench: {} elements are wrong\n", wrong_);
    if (json_.is_open() && !json_.good()) {
        fmt::print(stderr, "nexar bench: cannot write {}\n", plan_.json_path);
        return false;
    }
    return wrong_ == 0;
}

}  // namespace nexar::bench
