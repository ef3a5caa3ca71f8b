#pragma once

#include <functional>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"

namespace nexar {

// Reads the configuration sources of the process: arguments, environment and files. Config::resolve
// gets their contents as values.

/// Removes the `--nexar-...` flags and their values from argv, as split_arguments() finds them. The
/// other arguments keep their order, argc becomes their number, and argv[argc] is null.
std::vector<ConfigFlag> take_flags(int& argc, char** argv);

/// The variables of this process whose names are `wanted`. Empty in a program that runs with more
/// privileges than its caller (such as setuid), because it must not trust them. Must not run while
/// another thread changes the environment.
std::vector<NamedValue> read_variables(const std::function<bool(std::string_view)>& wanted);

/// Removes a variable from the environment, and overwrites its value in the memory that
/// /proc/PID/environ shows. Must not run while another thread reads or changes the environment,
/// except through read_variables().
void remove_secret_variable(std::string_view name);

/// HOME and the variables of this process that start with NEXAR_. Otherwise like read_variables().
std::vector<NamedValue> read_environment();

/// A possible location of a configuration file.
struct ConfigFilePath {
    std::string path;
    bool required = false;  // the user named it, so it must exist
};

/// In order of precedence: $NEXAR_CONFIG (required), ~/.config/nexar.toml if HOME is an absolute
/// path, and `system_file`.
std::vector<ConfigFilePath> config_file_paths(std::span<const NamedValue> environment,
                                              std::string system_file = "/etc/nexar.toml");

/// Reads the files that exist. An Error (bad_config) names every file that is required and absent,
/// cannot be read, is not a regular file, or is larger than 1 MiB.
Result<std::vector<ConfigFile>> read_config_files(std::span<const ConfigFilePath> paths);

/// A location that was searched.
struct SeenConfigFile {
    std::string path;
    bool found = false;
};

struct LoadedConfig {
    Config config;
    std::vector<SeenConfigFile> files;  // in order of precedence
};

/// The configuration of this process: kSettings resolved from `code`, `flags`, the environment and
/// the files. Applies the log settings, and logs warnings.
Result<LoadedConfig> load_config(std::vector<NamedValue> code, std::vector<ConfigFlag> flags);

}  // namespace nexar
