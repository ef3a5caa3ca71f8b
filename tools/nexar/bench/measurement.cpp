#include "bench/measurement.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "bench/ceiling.hpp"

namespace nexar::bench {

namespace {

using schedule::Collective;

constexpr std::uint64_t kMostIterations = 1'000'000;  // each time is kept
constexpr double kWarmPart = 0.2;  // of the remaining time, for each warm-up round
constexpr double kSettled = 0.8;   // settled if a round takes more than this part of the last

/// The smallest sample that at least `part` of all samples do not exceed.
double percentile(const std::vector<double>& sorted, double part) {
    if (sorted.empty()) return 0;
    const double place = std::ceil(part * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
}

void largest_of_all(const Communicator& world, std::span<double> values) {
    world.all_reduce(values, max).wait();
}

double run_once(const Communicator& world, Exercise& exercise) {
    if (exercise.runs_ahead()) world.barrier().wait();
    return exercise.run();
}

/// The duration of iterations on the slowest rank in seconds, including untimed work.
struct Pace {
    double typical = 0;
    double total = 0;
};

Pace pace_of(const Communicator& world, Exercise& exercise, std::uint64_t times) {
    std::vector<double> samples;
    for (std::uint64_t i = 0; i < times; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        (void)run_once(world, exercise);
        samples.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    const double total = std::accumulate(samples.begin(), samples.end(), 0.0);
    std::ranges::sort(samples);
    std::array figures{percentile(samples, 0.5), total};
    largest_of_all(world, figures);
    return {.typical = figures[0], .total = figures[1]};
}

/// Returns the typical duration of an iteration. If the time limit determines the number of
/// iterations, warms up until they stop getting faster: the first ones are slow, and an estimate
/// from them would allow far too few iterations.
double warm_up(const Plan& plan, const Communicator& world, Exercise& exercise) {
    // A time limit needs at least one sample.
    const std::uint64_t times = std::max<std::uint64_t>(plan.warmup, plan.seconds ? 1 : 0);
    Pace pace = pace_of(world, exercise, times);
    if (plan.iterations != 0 || !plan.seconds) return pace.typical;
    double left = *plan.seconds - pace.total;
    for (bool settled = false; !settled && left > 0;) {
        const double fit = left * kWarmPart / std::max(pace.typical, 1e-9);
        const Pace next =
            pace_of(world, exercise, static_cast<std::uint64_t>(std::clamp(fit, 1.0, 10'000.0)));
        settled = next.typical > pace.typical * kSettled;
        pace = next;
        left -= next.total;
    }
    return pace.typical;
}

/// The same on all ranks.
std::uint64_t iterations_of(const Plan& plan, double typical_seconds) {
    const std::uint64_t wanted = plan.iterations == 0 ? kMostIterations : plan.iterations;
    if (!plan.seconds) return std::min(wanted, kMostIterations);
    const double fit = *plan.seconds / std::max(typical_seconds, 1e-9);
    const double most = static_cast<double>(std::min(wanted, kMostIterations));
    return static_cast<std::uint64_t>(std::clamp(fit, 1.0, most));
}

/// Processor time of this process, of all its threads and in the kernel too, in seconds.
double processor_time() {
    rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t wrong_elements(const Communicator& world, Exercise& exercise) {
    exercise.fill();
    (void)run_once(world, exercise);
    std::array wrong{exercise.wrong()};
    world.all_reduce(std::span(wrong), sum).wait();
    return wrong[0];
}

}  // namespace

double Measured::algorithm_bandwidth() const noexcept {
    return mean > 0 ? static_cast<double>(extent.bytes) / mean / 1e9 : 0;
}

double Measured::bus_bandwidth(const Subject& subject, std::uint32_t world) const noexcept {
    const double others = static_cast<double>(world - 1) / world;
    if (subject.is(Collective::all_reduce)) return algorithm_bandwidth() * 2 * others;
    if (subject.is(Collective::all_gather) || subject.is(Collective::reduce_scatter) ||
        subject.is(Collective::all_to_all)) {
        return algorithm_bandwidth() * others;
    }
    return algorithm_bandwidth();
}

double Measured::cpu_per_gigabyte(const Subject& subject, std::uint32_t world) const noexcept {
    const double moved =
        moved_bytes(subject, world, extent.bytes) * static_cast<double>(iterations);
    return moved > 0 ? cpu / (moved * 1e-9) : 0;
}

Measured measure(const Plan& plan, const Communicator& world, std::uint64_t size) {
    const auto ranks = static_cast<std::uint32_t>(world.size());
    Measured measured{.extent = extent_of(plan, ranks, size)};
    measured.algorithm = algorithm_of(plan, ranks, measured.extent);
    const auto exercise = make_exercise(plan, world, measured.extent);
    exercise->fill();
    measured.iterations = iterations_of(plan, warm_up(plan, world, *exercise));

    std::vector<double> samples(measured.iterations);
    world.barrier().wait();
    const double cpu_before = processor_time();
    for (double& sample : samples) sample = run_once(world, *exercise);
    std::array cpu{processor_time() - cpu_before};
    const double total = std::accumulate(samples.begin(), samples.end(), 0.0);
    std::ranges::sort(samples);
    std::array figures{total / static_cast<double>(samples.size()), percentile(samples, 0.5),
                       percentile(samples, 0.99)};
    largest_of_all(world, figures);
    world.all_reduce(std::span(cpu), sum).wait();
    measured.cpu = cpu[0];
    measured.mean = figures[0];
    measured.p50 = figures[1];
    measured.p99 = figures[2];
    if (plan.check) measured.wrong = wrong_elements(world, *exercise);
    return measured;
}

}  // namespace nexar::bench
