/// Measures collectives of two ranks in shared memory: the cost inside of the engines, and between
/// two threads.

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "memory_ranks.hpp"
#include "report.hpp"

namespace nexar::bench {
namespace {

using schedule::Collective;

constexpr int kBatch = 256;

/// Of this thread: other load does not count.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A collective of two ranks that share memory, in one thread: the cost inside of the engines, with
/// everything in the cache of one core.
void in_memory(Report& report, const std::string& name, Collective what, std::size_t count,
               bool shared = false) {
    MemoryRanks ranks(2);
    ranks.prepare(what, count, shared);
    const int repeat = count > 10'000 ? 1 : kBatch;
    const int batches = count > 10'000 ? 4 : 40;
    const auto batch = [&] {
        for (int i = 0; i < repeat; ++i) {
            ranks.start(0);
            ranks.start(1);
            bool first = false;
            bool second = false;
            while (!first || !second) {
                second = second || ranks.poll(1);
                first = first || ranks.poll(0);
            }
        }
    };
    batch();
    std::vector<double> seconds;
    for (int i = 0; i < 21; ++i) {
        const double begin = cpu_seconds();
        for (int k = 0; k < batches; ++k) batch();
        seconds.push_back(cpu_seconds() - begin);
    }
    std::ranges::sort(seconds);
    report.row(name, seconds[seconds.size() / 2] * 1e9 / (batches * 2 * repeat), "ns");
}

/// The same with a thread per rank.
struct Threads {
    int batch = 1;  // operations
    bool shared = false;
};
void between_threads(Report& report, const std::string& name, Collective what, std::size_t count,
                     const Threads& how) {
    const int batch = how.batch;
    MemoryRanks ranks(2);
    ranks.prepare(what, count, how.shared);
    std::atomic<int> go = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> stop = false;
    const auto run = [&](std::uint32_t rank) {
        for (int i = 0; i < batch; ++i) {
            ranks.start(rank);
            while (!ranks.poll(rank)) {
            }
        }
    };
    std::thread other([&] {
        for (int last = 0; !stop;) {
            if (go == last) continue;
            last = go;
            run(1);
            ++ended;
        }
    });
    int batches = 0;
    const auto timings = measure({[&] {
        ++go;
        run(0);
        for (++batches; ended != batches;) {
        }
    }});
    stop = true;
    other.join();
    report.row(name, timings[0].median * 1e9 / batch, "ns");
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app("Cost of collectives in shared memory");
    std::string json;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    bool quick = false;
    app.add_flag("--quick", quick, "Only the costs inside of the engines, in one thread");
    CLI11_PARSE(app, argc, argv);

    Report report(json);
    in_memory(report, "one_thread_barrier_ns", Collective::barrier, 0);
    in_memory(report, "one_thread_all_reduce_8B_ns", Collective::all_reduce, 2);
    in_memory(report, "one_thread_broadcast_8B_ns", Collective::broadcast, 2);
    in_memory(report, "one_thread_all_reduce_4KiB_ns", Collective::all_reduce, 1024);
    constexpr std::size_t kMiB = std::size_t{1} << 18U;  // elements
    in_memory(report, "one_thread_all_reduce_1MiB_ns", Collective::all_reduce, kMiB);
    in_memory(report, "one_thread_shared_all_reduce_1MiB_ns", Collective::all_reduce, kMiB, true);
    if (quick) return report.finish() ? 0 : 1;
    constexpr std::size_t kKiB = 256;  // elements
    between_threads(report, "barrier_ns", Collective::barrier, 0, {.batch = kBatch});
    for (const std::size_t bytes : {8U, 1024U, 4096U, 16384U, 65536U}) {
        between_threads(report, "all_reduce_" + std::to_string(bytes) + "B_ns",
                        Collective::all_reduce, bytes / 4, {.batch = kBatch});
    }
    between_threads(report, "shared_all_reduce_256KiB_ns", Collective::all_reduce, 256 * kKiB,
                    {.batch = 8, .shared = true});
    for (const std::size_t mib : {1U, 16U, 64U}) {
        for (const Collective what : {Collective::all_reduce, Collective::broadcast}) {
            const std::string name =
                std::string(nexar::schedule::name(what)) + "_" + std::to_string(mib) + "MiB_ns";
            between_threads(report, name, what, mib * 1024 * kKiB, {});
            between_threads(report, "shared_" + name, what, mib * 1024 * kKiB, {.shared = true});
        }
    }
    return report.finish() ? 0 : 1;
}
