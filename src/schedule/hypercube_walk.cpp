#include "schedule/hypercube_walk.hpp"

#include <algorithm>

namespace nexar::schedule {

std::vector<std::uint32_t> hypercube_walk(std::uint32_t n) {
    if (n == 0) return {};
    if (n == 1) return {0};
    const std::uint32_t half = n / 2;
    std::vector<std::uint32_t> walk;
    walk.reserve(n);
    if (n % 2 == 0) {
        const std::vector<std::uint32_t> upper = hypercube_walk(half);
        for (const std::uint32_t slot : upper) walk.push_back(2 * slot);
        for (std::uint32_t i = half; i-- > 0;) walk.push_back(2 * upper[i] + 1);
        return walk;
    }
    walk = hypercube_walk(n - 1);
    // Without its lowest bit, `half` is a neighbour in the upper bits.
    const std::uint32_t neighbour = 2 * (half & (half - 1));
    std::ranges::rotate(walk, std::ranges::find(walk, neighbour));
    walk.insert(walk.begin(), n - 1);
    return walk;
}

}  // namespace nexar::schedule
