#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/hosts.hpp"
#include "run/part.hpp"
#include "run/supervisor.hpp"

namespace nexar::run {

/// One unit per rank of a part that runs on this host. The environment is this process's with what
/// the part adds, and what a rank must know.
std::vector<Unit> rank_units(const Part& part);

/// The unit that starts a part on another host: ssh, which runs `remote_nexar` there and gives it
/// the part.
Unit host_unit(const HostShare& share, const Part& part, std::string_view remote_nexar);

/// Whether a shell would find the program.
bool is_on_path(const std::string& program);

/// This process's variables, "NAME=value", with `more` in place of those of the same name, and
/// without what tells a rank who it is.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

/// The settings in this process's environment, "NEXAR_LOG_LEVEL=debug", which hold for ranks on
/// other hosts, too.
std::vector<std::string> setting_variables();

}  // namespace nexar::run
