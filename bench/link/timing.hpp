#pragma once

#include <chrono>
#include <vector>

#include "base/time.hpp"

namespace nexar::bench {

/// How long anything between the two processes may take before the run fails.
inline constexpr Duration kPatience = std::chrono::seconds(20);

inline double in_seconds(Duration time) noexcept {
    return std::chrono::duration<double>(time).count();
}

/// Seconds of the machine's monotonic clock: the same in both processes.
double seconds_now() noexcept;

/// CPU seconds, user and system, that this process has used.
double cpu_seconds() noexcept;

/// The median over the repetitions, and the extremes that tell how far to trust it.
struct Spread {
    double median = 0;
    double least = 0;
    double most = 0;
};

/// `samples` must not be empty.
Spread spread_of(std::vector<double> samples);

/// a[i] / b[i]: what was measured one after the other is compared, so that a noisy moment hits
/// both.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest sample that at least the fraction `q` of them do not exceed.
double quantile(std::vector<double> samples, double q);

}  // namespace nexar::bench
