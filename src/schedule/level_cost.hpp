#pragma once

#include "schedule/cost.hpp"
#include "schedule/traffic.hpp"

namespace nexar::schedule {

/// The formulas of two-level algorithms, see predicted_seconds() and traffic_of(). They ignore that
/// chunks which are not adjacent travel as several messages.
double level_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                     const Rates& host_rates);
Traffic level_traffic(const Algorithm& algorithm, const Extent& extent);

}  // namespace nexar::schedule
