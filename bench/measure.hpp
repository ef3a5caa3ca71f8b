#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace nexar::bench {

/// What one contender took per call, in seconds: the median over the repetitions, and the extremes
/// that tell how far to trust it.
struct Timing {
    double median = 0;
    double fastest = 0;
    double slowest = 0;
};

struct MeasureOptions {
    int repetitions = 9;
    double seconds_per_repetition = 0.05;
};

/// Times the contenders side by side, A B C A B C ..., so that a noisy moment hits all of them and
/// their ratios stand. Each is warmed up, then called as often as fills a repetition.
std::vector<Timing> measure(const std::vector<std::function<void()>>& contenders,
                            const MeasureOptions& options = {});

/// Keeps the compiler from removing a computation whose result at `p` nobody reads.
inline void keep(const void* p) {
    asm volatile("" : : "g"(p) : "memory");  // NOLINT(hicpp-no-assembler)
}

}  // namespace nexar::bench
