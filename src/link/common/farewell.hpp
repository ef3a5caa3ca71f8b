#pragma once

#include <chrono>

#include "base/time.hpp"

namespace nexar::link {

/// How long a closed link that has delivered everything waits for its peer to deliver everything as
/// well, before it reports Down.
inline constexpr Duration kFarewell = std::chrono::milliseconds(500);

}  // namespace nexar::link
