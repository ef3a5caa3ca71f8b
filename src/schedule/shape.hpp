#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "schedule/cost.hpp"

namespace nexar::schedule {

/// The terms of a collective that the formulas of cost.cpp and traffic.cpp use.
struct Shape {
    explicit Shape(const Extent& extent)
        : n(extent.world),
          p(std::bit_floor(extent.world)),
          odd(p == n ? 0 : 1),
          late(n - p > p / 2 ? 1 : 0),
          down(std::bit_width(extent.world) - 1),
          up(std::bit_width(extent.world - 1)),
          S(extent.bytes),
          c(extent.chunk),
          segment(extent.segment),
          window(extent.window),
          hosts(extent.levels.hosts == 0 ? n : extent.levels.hosts),
          smallest(extent.levels.smallest),
          largest(extent.levels.largest),
          crossings(extent.levels.crossings),
          stretches(extent.stretches) {}

    double n;        // ranks
    double p;        // groups: the largest power of two up to n
    double odd;      // 1 if n is not a power of two, else 0
    double late;     // 1 if more than p/2 ranks are beyond p, so that every round waits for them;
                     // fewer of them delay one round only
    double down;     // log2(p)
    double up;       // log2(n), rounded up
    double S;        // bytes of the vector
    double c;        // bytes of a chunk
    double segment;  // bytes; 0: none
    double window;
    double hosts;
    double smallest;  // ranks of the smallest host, and of the largest
    double largest;
    double crossings;            // the most ranks of a host whose next rank is on another host
    const Stretches* stretches;  // nullptr: every pair of ranks has a link

    /// For a vector or chunk of this many bytes: the size of its longest piece, and the number of
    /// pieces.
    double piece(double bytes) const { return segment == 0 ? bytes : std::min(segment, bytes); }
    double pieces(double bytes) const {
        return segment == 0 || bytes <= segment ? 1 : std::ceil(bytes / segment);
    }
};

}  // namespace nexar::schedule
