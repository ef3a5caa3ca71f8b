#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/config_flags.hpp"

namespace nexar::run {

/// Names of settings with their values.
using NamedSettings = std::vector<std::pair<std::string, std::string>>;

/// The settings given as --nexar-... flags.
NamedSettings flag_settings(std::span<const ConfigFlag> flags);

/// Adds a setting that only the launcher of `ranks` on this machine can know, unless the user has
/// set it: how many ranks share a processor.
void add_sharing(NamedSettings& settings, const Config& config, std::uint32_t ranks);

/// The settings as variables for the environment of ranks: "NEXAR_LOG_LEVEL=debug".
std::vector<std::string> as_variables(const NamedSettings& settings);

}  // namespace nexar::run
