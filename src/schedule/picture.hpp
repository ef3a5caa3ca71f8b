#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// Who sends how much to whom, for people: a line per round, which is those messages that wait for
/// equally many others, and one line for rounds that look alike. All of a small world, of a larger
/// one what rank 0 has to do with; of many lines the first ones and the last. Of schedules that
/// belong together.
std::string picture(std::span<const Schedule> ranks, std::uint64_t element_bytes);

}  // namespace nexar::schedule
