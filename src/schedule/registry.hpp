#pragma once

#include <span>
#include <string_view>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// Every algorithm, grouped by operation. Each works for all worlds, roots and counts. Operators
/// that do not commute need an algorithm that keeps order, and results that must not depend on the
/// choice need a canonical one.
std::span<const Algorithm> algorithms() noexcept;

/// Returns nullptr if the operation has no algorithm of that name.
const Algorithm* find_algorithm(Collective operation, std::string_view name) noexcept;

}  // namespace nexar::schedule
