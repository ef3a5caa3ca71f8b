#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// The messages of a collective as text: one line per round, with equal rounds on one line. Shows
/// every message of a small world, and only those of rank 0 in a larger one; leaves out the middle
/// when there are many lines. `ranks` are the schedules of one collective, in the order of ranks.
std::string text_picture(std::span<const Schedule> ranks, std::uint64_t element_bytes);

}  // namespace nexar::schedule
