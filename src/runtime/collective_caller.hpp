#pragma once

#include <cstddef>
#include <limits>
#include <nexar/collective_call.hpp>

#include "engine/collective.hpp"

namespace nexar::detail {

/// Of all ranks together, so that sums of counts do not overflow.
inline constexpr std::size_t kMostElements = std::numeric_limits<std::size_t>::max() / 32;

/// Sets what the engine needs of a call on rank `me`. Throws nexar::Error for a call that makes no
/// sense.
void understand(const CollectiveCall& call, std::uint32_t world, std::uint32_t me,
                engine::CollectiveOperation& into);

/// The same check for a v-variant whose counts are to be exchanged, before that.
void check_counted(const CollectiveCall& call, std::uint32_t world, std::uint32_t me);

}  // namespace nexar::detail
