#include "measure.hpp"

#include <algorithm>
#include <chrono>

namespace nexar::bench {

namespace {

double seconds_for(const std::function<void()>& contender, std::size_t calls) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < calls; ++i) contender();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Doubles the number of calls until they fill the requested time.
std::size_t calls_to_fill(const std::function<void()>& contender, double seconds) {
    std::size_t calls = 1;
    while (seconds_for(contender, calls) < seconds && calls < (std::size_t{1} << 40)) calls *= 2;
    return calls;
}

}  // namespace

std::vector<Timing> measure(const std::vector<std::function<void()>>& contenders,
                            const MeasureOptions& options) {
    std::vector<std::size_t> calls;
    calls.reserve(contenders.size());
    for (const auto& contender : contenders) {
        calls.push_back(calls_to_fill(contender, options.seconds_per_repetition));
    }
    std::vector<std::vector<double>> samples(contenders.size());
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            samples[i].push_back(seconds_for(contenders[i], calls[i]) /
                                 static_cast<double>(calls[i]));
        }
    }
    std::vector<Timing> timings;
    timings.reserve(samples.size());
    for (auto& sample : samples) {
        std::ranges::sort(sample);
        timings.push_back({.median = sample[sample.size() / 2],
                           .fastest = sample.front(),
                           .slowest = sample.back()});
    }
    return timings;
}

}  // namespace nexar::bench
