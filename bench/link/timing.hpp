#pragma once

#include <chrono>
#include <vector>

#include "base/time.hpp"

namespace nexar::bench {

/// The timeout of every step between the two processes; after it the run fails.
inline constexpr Duration kPatience = std::chrono::seconds(20);

inline double in_seconds(Duration time) noexcept {
    return std::chrono::duration<double>(time).count();
}

/// Seconds of the machine's monotonic clock, which both processes share.
double seconds_now() noexcept;

/// CPU seconds, user and system, that this process has used.
double cpu_seconds() noexcept;

/// The median of the repetitions, and the extremes, which show how reliable it is.
struct Spread {
    double median = 0;
    double least = 0;
    double most = 0;
};

/// `samples` must not be empty.
Spread spread_of(std::vector<double> samples);

/// a[i] / b[i]: compares samples that were measured one after the other, so that other load affects
/// both.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest sample that at least the fraction `q` of all samples do not exceed.
double quantile(std::vector<double> samples, double q);

}  // namespace nexar::bench
