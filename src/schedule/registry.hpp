#pragma once

#include <span>
#include <string_view>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// Every algorithm, those of one operation together. There for all worlds, roots and counts. For
/// an operator that is not commutative only those that keep order may be taken, and for results
/// that must not depend on the choice only canonical ones.
std::span<const Algorithm> algorithms() noexcept;

/// nullptr if there is none of that name.
const Algorithm* find_algorithm(Collective operation, std::string_view name) noexcept;

}  // namespace nexar::schedule
