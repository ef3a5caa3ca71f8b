#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace nexar::bench {

/// The time of one contender per call, in seconds: the median of the repetitions, and the extremes,
/// which show how reliable it is.
struct Timing {
    double median = 0;
    double fastest = 0;
    double slowest = 0;
};

struct MeasureOptions {
    int repetitions = 9;
    double seconds_per_repetition = 0.05;
};

/// Times the contenders in turn, A B C A B C ..., so that other load affects all of them and their
/// ratios stay valid. Warms up each one, then calls it often enough to fill a repetition.
std::vector<Timing> measure(const std::vector<std::function<void()>>& contenders,
                            const MeasureOptions& options = {});

/// Keeps the compiler from removing a computation whose result at `p` is never read.
inline void keep(const void* p) {
    asm volatile("" : : "g"(p) : "memory");  // NOLINT(hicpp-no-assembler)
}

}  // namespace nexar::bench
