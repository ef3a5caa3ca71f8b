/// Measures how fast a cluster of processes on this host notices that a rank was killed or stopped,
/// how fast the survivors complete a correct all-reduce on the shrunk communicator, and how long a
/// process takes to join while the others exchange traffic. After each event a new process takes
/// the place of the lost one.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "recovery_cluster.hpp"
#include "recovery_notice.hpp"
#include "report.hpp"

namespace nexar::bench {
namespace {

constexpr double kNoBar = 0;

/// The figures of one kind of event, in milliseconds.
class Series {
public:
    void add(double figure) { all_.push_back(figure); }

    bool empty() const noexcept { return all_.empty(); }

    /// Reports {name}_{p50,p99,max}_ms_{ranks}, the second with its bar.
    void report(Report& report, const std::string& name, int ranks, double bar) {
        std::ranges::sort(all_);
        const auto row = [&](const char* which, double part, double most) {
            const auto index =
                static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1));
            const std::string full = fmt::format("{}_{}_ms_{}", name, which, ranks);
            if (most > 0) {
                report.row(full, all_[index], "ms", most);
            } else {
                report.row(full, all_[index], "ms");
            }
        };
        row("p50", 0.5, kNoBar);
        row("p99", 0.99, bar);
        row("max", 1.0, kNoBar);
    }

private:
    std::vector<double> all_;
};

struct Figures {
    Series kill_noticed;
    Series kill_reduced;
    Series stop_noticed;
    Series join;
    Series pause;
};

struct Plan {
    int ranks = 8;
    std::string link = "auto";
    int kills = 0;
    int stops = 0;
    bool verbose = false;
};

void run_events(const Plan& plan, std::uint64_t random_seed, Figures& figures) {
    RecoveryCluster cluster(plan.ranks, plan.link, random_seed);
    const auto grow = [&] {
        const Growth growth = cluster.grow();
        figures.join.add(growth.join);
        figures.pause.add(growth.pause);
        if (plan.verbose)
            fmt::print("join {:.1f} ms, pause {:.1f} ms ({})\n", growth.join, growth.pause,
                       growth.parts);
    };
    for (int i = 0; i < plan.kills; ++i) {
        const Loss loss = cluster.kill();
        figures.kill_noticed.add(loss.noticed);
        figures.kill_reduced.add(loss.reduced);
        if (plan.verbose) {
            fmt::print("kill {}: noticed {:.1f} ms, reduced {:.1f} ms\n", i, loss.noticed,
                       loss.reduced);
        }
        grow();
    }
    for (int i = 0; i < plan.stops; ++i) {
        const Loss loss = cluster.stop();
        figures.stop_noticed.add(loss.noticed);
        if (plan.verbose) fmt::print("stop {}: noticed {:.1f} ms\n", i, loss.noticed);
        grow();
    }
}

int run(int argc, char** argv) {
    CLI::App app{"Measures how fast a cluster recovers from lost ranks and takes in new ones."};
    std::string json_path;
    int events = 200;
    std::vector<int> ranks{8, 16};
    bool quick = false;
    bool verbose = false;
    std::string link;
    std::uint64_t random_seed = std::random_device{}();
    app.add_option("--json", json_path,
                   "Also write the rows to this file, one JSON object per line");
    app.add_option("--events", events, "Events of each kind")->check(CLI::Range(1, 1'000'000));
    app.add_option("--ranks", ranks, "Sizes of the clusters; all rows exist only for 8")
        ->check(CLI::Range(3, 64));
    app.add_option("--link", link,
                   "Use only this kind of link: quic or shm; default: auto, and "
                   "quic for half of the stopped ranks")
        ->check(CLI::IsMember({"auto", "quic", "shm"}));
    app.add_option("--seed", random_seed, "Chooses the ranks and the moments of the events");
    app.add_flag("--quick", quick, "10 events of each kind");
    app.add_flag("--verbose", verbose, "Print every event");
    CLI11_PARSE(app, argc, argv);
    if (quick) events = 10;
    fmt::print("--seed {}\n", random_seed);
    Report report(json_path);
    for (const int size : ranks) {
        Figures figures;
        const bool smallest = size == ranks.front();
        Plan plan{.ranks = size,
                  .link = link.empty() ? "auto" : link,
                  .kills = events,
                  .stops = smallest ? (link.empty() ? events / 2 : events) : 0,
                  .verbose = verbose};
        run_events(plan, random_seed, figures);
        if (smallest && link.empty()) {
            plan.link = "quic";
            plan.kills = 0;
            plan.stops = events - plan.stops;
            run_events(plan, random_seed + 1, figures);
        }
        const bool larger = size > 8;
        figures.kill_noticed.report(report, "kill_detect", size, larger ? kNoBar : 100);
        figures.kill_reduced.report(report, "kill_to_allreduce", size, larger ? 400 : 250);
        if (!figures.stop_noticed.empty()) {
            figures.stop_noticed.report(report, "stop_detect", size, 750);
        }
        figures.join.report(report, "join", size, larger ? kNoBar : 300);
        figures.pause.report(report, "join_pause", size, larger ? kNoBar : 50);
    }
    return report.finish() && report.all_ok() ? 0 : 1;
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) try {
    if (argc == 2 && std::string_view(argv[1]) == nexar::bench::kRankMode) {
        return nexar::bench::be_a_rank();
    }
    return nexar::bench::run(argc, argv);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
