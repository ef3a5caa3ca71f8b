#pragma once

#include <cstdint>
#include <vector>

namespace nexar::schedule {

/// An order of the slots 0 to n-1 of an incomplete hypercube, in which two slots are neighbours if
/// they differ in one bit. Consecutive slots are neighbours, and if n is even, the last slot and
/// the first are, too. If n is odd, those two are two hops apart, which no order avoids: every hop
/// changes the parity of a slot, so no closed walk has an odd number of hops.
///
///     n = 6    4 0 2 3 1 5          n = 7    6 4 0 2 3 1 5
///
/// For n = 2m: twice the slots of the walk for m, then backwards the same with the lowest bit set.
/// For n = 2m + 1: the closed walk for 2m, beginning at a neighbour of slot 2m, which comes first.
std::vector<std::uint32_t> hypercube_walk(std::uint32_t n);

}  // namespace nexar::schedule
