#pragma once

#include <cstddef>
#include <limits>
#include <nexar/collective_call.hpp>

#include "engine/collective.hpp"

namespace nexar::detail {

/// Maximum over all ranks together, so that sums of counts do not overflow.
inline constexpr std::size_t kMostElements = std::numeric_limits<std::size_t>::max() / 32;

/// Fills in what the engine needs to run the call on rank `me`. Throws nexar::Error if the
/// arguments are invalid.
void understand(const CollectiveCall& call, std::uint32_t world, std::uint32_t me,
                engine::CollectiveOperation& into);

/// The same check for a v-variant, before its counts are exchanged.
void check_counted(const CollectiveCall& call, std::uint32_t world, std::uint32_t me);

}  // namespace nexar::detail
