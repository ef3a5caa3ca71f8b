#pragma once

#include <nexar/result.hpp>

#include "base/config.hpp"
#include "schedule/choice.hpp"

namespace nexar::runtime {

/// How collectives choose their algorithms, by a Config of kSettings. Fails with bad_config.
Result<schedule::Profile> collective_profile(const Config& config);

}  // namespace nexar::runtime
