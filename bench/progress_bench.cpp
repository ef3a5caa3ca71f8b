/// Measures the overhead of the progress loop: starting and completing an operation, waiting for
/// it, posting from other threads, and waking a thread.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "operation_cost.hpp"
#include "progress_crowd.hpp"
#include "report.hpp"
#include "runtime/progress.hpp"

namespace nexar::bench {
namespace {

using runtime::Completion;
using runtime::Progress;

constexpr int kBatch = 256;

// Adds no cost of its own; completes an operation in the next turn.
class Immediate final : public runtime::Driven {
public:
    explicit Immediate(Progress& progress) : progress_(progress) { progress_.add(*this).value(); }
    Immediate(const Immediate&) = delete;
    Immediate& operator=(const Immediate&) = delete;
    ~Immediate() override { progress_.remove(*this); }

    void start(Completion& completion) noexcept { started_ = &completion; }

    std::span<port::Carrier* const> carriers() const noexcept override { return {}; }
    bool turn(TimePoint /*now*/) noexcept override {
        if (started_ == nullptr) return false;
        progress_.complete(*std::exchange(started_, nullptr));
        return true;
    }
    std::optional<TimePoint> next_deadline() const noexcept override { return std::nullopt; }

private:
    Progress& progress_;
    Completion* started_ = nullptr;
};

// Never has anything to do, and measures how often a spinning driver looks.
class Idle final : public runtime::Driven {
public:
    std::span<port::Carrier* const> carriers() const noexcept override { return {}; }
    bool turn(TimePoint /*now*/) noexcept override { return false; }
    bool look(TimePoint /*now*/) noexcept override {
        if (++looks_ % kBatch == 0) {
            const TimePoint now = SteadyClock{}.now();
            fastest_ = std::min(fastest_, now - begin_);
            begin_ = now;
        }
        return false;
    }
    std::optional<TimePoint> next_deadline() const noexcept override { return std::nullopt; }

    /// Of the batches of looks, because other programs may have disturbed some of them.
    double fastest_look_ns() const noexcept {
        return static_cast<double>(fastest_.count()) / kBatch;
    }

private:
    long looks_ = 0;
    TimePoint begin_{};
    Duration fastest_ = Duration::max();
};

std::unique_ptr<Progress> make_progress() {
    return std::move(Progress::make({})).value();
}

// What the loop adds to each look of a driver that spins.
double idle_turn_ns() {
    const auto progress = std::move(Progress::make({.spin = std::chrono::seconds(1)})).value();
    Idle idle;
    progress->add(idle).value();
    Completion never;
    progress->wait(never, SteadyClock{}.now() + std::chrono::milliseconds(200));
    progress->remove(idle);
    return idle.fastest_look_ns();
}

double median_ns(const std::function<void()>& one_batch) {
    return measure({one_batch}).front().median / kBatch * 1e9;
}

double guard_ns(Progress& progress) {
    return median_ns([&] {
        for (int i = 0; i < kBatch; ++i) const Progress::Guard guard(progress);
    });
}

// The operation is complete when its start returns, like a small send.
double completed_at_once_ns(Progress& progress) {
    return median_ns([&] {
        for (int i = 0; i < kBatch; ++i) {
            Completion completion;
            {
                const Progress::Guard guard(progress);
                progress.complete(completion);
            }
            progress.wait(completion);
        }
    });
}

// The waiting thread takes the baton, makes the turn that completes the operation, and releases the
// baton.
double driven_wait_ns(Progress& progress, Immediate& node) {
    return median_ns([&] {
        for (int i = 0; i < kBatch; ++i) {
            Completion completion;
            {
                const Progress::Guard guard(progress);
                node.start(completion);
            }
            progress.wait(completion);
        }
    });
}

class Count final : public runtime::Submission {
public:
    void run_under_lock() noexcept override { ++count_; }
    long count() const noexcept { return count_; }

private:
    long count_ = 0;
};

// Millions of posts per second, by all threads together.
double posts_mps(Progress& progress, int threads) {
    constexpr int kPosts = 1 << 19;
    Count count;
    const auto begin = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> posters;
        posters.reserve(static_cast<std::size_t>(threads));
        for (int t = 0; t < threads; ++t) {
            posters.emplace_back([&] {
                for (int i = 0; i < kPosts / threads; ++i) progress.post(count);
            });
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    keep(&count);
    return kPosts / took.count() / 1e6;
}

// From the completion in one thread to the return of wait() in another thread, which drives and
// sleeps.
double wake_us(Progress& progress) {
    constexpr int kWakes = 2000;
    std::atomic<Completion*> awaited{nullptr};
    std::jthread waiting([&] {
        for (int i = 0; i < kWakes; ++i) {
            Completion completion;
            awaited.store(&completion, std::memory_order_release);
            progress.wait(completion);
        }
    });
    const auto complete_next = [&] {
        Completion* completion = nullptr;
        while ((completion = awaited.exchange(nullptr, std::memory_order_acq_rel)) == nullptr) {
            std::this_thread::yield();
        }
        const Progress::Guard guard(progress);
        progress.complete(*completion);
    };
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kWakes; ++i) complete_next();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return took.count() / kWakes * 1e6;
}

// Barriers of processes on this machine: a processor for each, more ranks than processors, and a
// rank, each in turn, that computes before each barrier.
void report_barriers(Report& report, bool with_spin) {
    using std::chrono::microseconds;
    for (const int ranks : {2, 4, 8}) {
        const auto row = [&](const char* name, BarrierWait wait) {
            report.row(fmt::format("progress_barrier_{}_ranks{}", ranks, name),
                       measure_barrier({.ranks = ranks, .wait = wait}), "us");
        };
        row("", BarrierWait::progress);
        row("_of_yielding", BarrierWait::yield);
        if (with_spin) row("_of_spinning", BarrierWait::spin);
    }
    for (const int spin : {0, 20, 100}) {
        report.row(fmt::format("progress_barrier_after_50us_spin_{}us", spin),
                   measure_barrier({.spin = microseconds(spin), .compute = microseconds(50)}),
                   "us");
    }
}

// How much longer a barrier takes than the computation of one rank before it, for several spin
// budgets: a rank that still spins when the other arrives saves the wakeup.
void report_spin(Report& report) {
    using std::chrono::microseconds;
    for (const int compute : {5, 20, 50, 100, 200, 500}) {
        for (const int spin : {0, 20, 50, 100, 200, 400}) {
            const double took = measure_barrier({.spin = microseconds(spin),
                                                 .compute = microseconds(compute),
                                                 .time = std::chrono::milliseconds(300)});
            report.row(fmt::format("spin_{}us_after_{}us", spin, compute), took - compute, "us");
        }
    }
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app{"Measures the progress loop."};
    std::string json_path;
    app.add_option("--json", json_path,
                   "Also write the rows to this file, one JSON object per line");
    bool barriers = false;
    bool with_spin = false;
    app.add_flag("--barriers", barriers, "Also measure barriers of 2 to 8 processes");
    app.add_flag("--spinning", with_spin, "With --barriers: also those of ranks that only spin");
    bool cost = false;
    bool spin = false;
    app.add_flag("--cost", cost, "Only print what the steps of 8-byte operations cost");
    app.add_flag("--spin", spin, "Only print what spin budgets save if a rank is late");
    CLI11_PARSE(app, argc, argv);

    Report report(json_path);
    if (spin) report_spin(report);  // forks, so before any thread
    if (cost) report_operation_cost(report);
    if (spin || cost) return report.finish() ? 0 : 1;
    if (barriers) report_barriers(report, with_spin);  // forks, so before any thread
    report.row("progress_idle_turn", idle_turn_ns(), "ns");
    const auto progress = make_progress();
    {
        Immediate node(*progress);
        report.row("progress_guard", guard_ns(*progress), "ns");
        report.row("progress_completed_at_once", completed_at_once_ns(*progress), "ns");
        report.row("progress_driven_wait", driven_wait_ns(*progress, node), "ns");
        report.row("progress_wake", wake_us(*progress), "us");
        const double one = posts_mps(*progress, 1);
        const double four = posts_mps(*progress, 4);
        report.row("progress_posts_1_thread", one, "M/s");
        report.row("progress_posts_4_threads", four, "M/s");
    }
    return report.finish() ? 0 : 1;
}
