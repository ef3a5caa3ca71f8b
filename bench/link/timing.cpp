#include "timing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>

#include "base/assert.hpp"

namespace nexar::bench {

namespace {

double read_clock(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

double seconds_now() noexcept {
    return read_clock(CLOCK_MONOTONIC);
}

double cpu_seconds() noexcept {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

Spread spread_of(std::vector<double> samples) {
    NEXAR_ASSERT(!samples.empty());
    std::ranges::sort(samples);
    return {
        .median = samples[samples.size() / 2], .least = samples.front(), .most = samples.back()};
}

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
    NEXAR_ASSERT(a.size() == b.size());
    std::vector<double> result(a.size());
    std::ranges::transform(a, b, result.begin(), std::divides{});
    return result;
}

double quantile(std::vector<double> samples, double q) {
    NEXAR_ASSERT(!samples.empty() && q >= 0 && q <= 1);
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(samples.size())));
    const auto place =
        samples.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
    std::ranges::nth_element(samples, place);
    return *place;
}

}  // namespace nexar::bench
