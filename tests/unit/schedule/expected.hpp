#pragma once

#include <cstdint>
#include <vector>

#include "unit/schedule/cases.hpp"
#include "unit/schedule/interpreter.hpp"

namespace nexar::schedule::testing {

/// An operator that shows errors of the algorithm: if it keeps the order, one that does not
/// commute.
Operator operator_for(const Case& c);

/// The definition of the operation: what the result of `rank` must hold, element by element, if
/// element(rank, i) is element i of the input of a rank.
std::vector<std::uint64_t> expected(const Case& c, const std::vector<Request>& asked,
                                    std::uint32_t rank);

}  // namespace nexar::schedule::testing
