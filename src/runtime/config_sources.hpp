#pragma once

#include <functional>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"

namespace nexar {

// The side of configuration that touches the process: its arguments, its environment and the files.
// What it finds goes as values to Config::resolve.

/// Takes the `--nexar-...` flags and their values out of argv, as split_arguments() finds them. The
/// other pointers stay in order behind argv[0], argc becomes their number, and argv[argc] is null.
std::vector<ConfigFlag> take_flags(int& argc, char** argv);

/// The variables of this process whose names are `wanted`. None in a program that runs with more
/// rights than its caller (setuid and the like): there they are not to be trusted. Must not run
/// while another thread changes the environment.
std::vector<NamedValue> read_variables(const std::function<bool(std::string_view)>& wanted);

/// Removes a variable from the environment, and overwrites its value where the kernel shows it to
/// others: in /proc/PID/environ. Must not run while another thread reads or changes the environment
/// other than by read_variables().
void remove_secret_variable(std::string_view name);

/// HOME and the variables of this process that start with NEXAR_. None in a program that runs with
/// more rights than its caller (setuid and the like): there they are not to be trusted. Must not
/// run while another thread changes the environment.
std::vector<NamedValue> read_environment();

/// A place where a configuration file may be.
struct ConfigFilePath {
    std::string path;
    bool required = false;  // somebody named it, so that it must be there
};

/// Strongest first: $NEXAR_CONFIG (required), ~/.config/nexar.toml where HOME is an absolute path,
/// and `system_file`.
std::vector<ConfigFilePath> config_file_paths(std::span<const NamedValue> environment,
                                              std::string system_file = "/etc/nexar.toml");

/// Reads the files that are there. An Error (bad_config) names every one that is required and
/// absent, that cannot be read, that is no regular file, or that is larger than 1 MiB.
Result<std::vector<ConfigFile>> read_config_files(std::span<const ConfigFilePath> paths);

/// A place that was looked at.
struct SeenConfigFile {
    std::string path;
    bool found = false;
};

struct LoadedConfig {
    Config config;
    std::vector<SeenConfigFile> files;  // strongest first
};

/// The configuration of this process: kSettings resolved from `code`, `flags`, the environment and
/// the files. Applies what it says about the log, and logs the warnings.
Result<LoadedConfig> load_config(std::vector<NamedValue> code, std::vector<ConfigFlag> flags);

}  // namespace nexar
