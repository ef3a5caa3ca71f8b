#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace nexar::run {

/// Names ranks in a sentence: "rank 2", "ranks 0, 1 and 3", "ranks 0 to 5 and 7". `ranks` must be
/// ascending and not empty. Long lists end in "and 12 others".
std::string rank_list(std::span<const std::uint32_t> ranks);

}  // namespace nexar::run
