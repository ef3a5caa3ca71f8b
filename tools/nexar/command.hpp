#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "base/config_flags.hpp"

namespace nexar {

// How the nexar command answers to the shell.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // understood, and it did not work
inline constexpr int kExitUsage = 2;    // the command line is not understood

/// What all subcommands share. Lives as long as the program.
struct Invocation {
    std::vector<ConfigFlag> flags;
    int exit_code = kExitOk;
};

// One file per subcommand; each adds itself, and sets the exit code when it ran.
void add_config_command(CLI::App& app, Invocation& invocation);

}  // namespace nexar
