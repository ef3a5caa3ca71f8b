#pragma once

#include <cstdint>
#include <string>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// The messages of a collective as an SVG image: one vertical line per rank, time downwards in
/// rounds, an arrow per message that names the pieces it carries, and a mark where the receiver
/// folds. Below each round, cells show which pieces each rank holds and how complete they are.
///
/// Equal arguments give equal bytes. The same limits as trace(): worlds up to kMostTraced.
std::string svg_picture(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root,
                        const Links& links = {});

}  // namespace nexar::schedule
