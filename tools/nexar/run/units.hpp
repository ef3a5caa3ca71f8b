#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/hosts.hpp"
#include "run/part.hpp"
#include "run/supervisor.hpp"

namespace nexar::run {

/// One unit per rank of a part that runs on this host. Its environment is that of this process,
/// plus the variables of the part and those that describe the rank.
std::vector<Unit> rank_units(const Part& part);

/// The unit that starts a part on another host: ssh, which runs `remote_nexar` there and sends it
/// the part.
Unit host_unit(const HostShare& share, const Part& part, std::string_view remote_nexar);

/// The prefix of a rank's lines after it was restarted: "[2.1] " for "[2] ".
std::string prefix_after(std::string prefix, std::uint32_t restarts);

/// True if a shell would find the program.
bool is_on_path(const std::string& program);

/// The environment of this process as "NAME=value". `more` replaces variables of the same name, and
/// the variables that identify a rank are left out.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

/// The settings in this process's environment, such as "NEXAR_LOG_LEVEL=debug"; they apply to ranks
/// on other hosts as well.
std::vector<std::string> setting_variables();

}  // namespace nexar::run
