#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/config_flags.hpp"

namespace nexar::run {

/// Settings by their names, each with its value.
using NamedSettings = std::vector<std::pair<std::string, std::string>>;

/// What was given as --nexar-...
NamedSettings flag_settings(std::span<const ConfigFlag> flags);

/// Adds what only who starts `ranks` on this machine knows, unless it is set: whether they share
/// processors.
void add_sharing(NamedSettings& settings, const Config& config, std::uint32_t ranks);

/// The same for the environment of ranks: "NEXAR_LOG_LEVEL=debug".
std::vector<std::string> as_variables(const NamedSettings& settings);

}  // namespace nexar::run
