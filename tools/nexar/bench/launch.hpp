#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "run/flag_settings.hpp"

namespace nexar::bench {

/// Starts so many ranks on this machine, each this program with `arguments`, and a seed for them.
/// Gives the exit code. What rank 0 prints appears as it is.
Result<int> launch(std::uint32_t ranks, std::vector<std::string> arguments,
                   const run::NamedSettings& settings);

/// One rank: joins the world that a launcher made, and measures. Gives the exit code; throws
/// nexar::Error.
int take_part(Plan plan, const run::NamedSettings& settings);

}  // namespace nexar::bench
