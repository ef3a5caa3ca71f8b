#pragma once

#include "security/wall_time.hpp"

namespace nexar::security {

/// The time at which the tests of this folder take place.
inline constexpr WallTime kNow = wall_time(1777863721);

}  // namespace nexar::security
