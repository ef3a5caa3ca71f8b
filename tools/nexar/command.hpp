#pragma once

#include <CLI/CLI.hpp>
#include <string>
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
    std::vector<std::string> program;  // what stands behind a lone `--`
    int exit_code = kExitOk;
};

// One file per subcommand; each adds itself, and sets the exit code when it ran.
void add_seed_command(CLI::App& app, Invocation& invocation);
void add_token_command(CLI::App& app, Invocation& invocation);
void add_run_command(CLI::App& app, Invocation& invocation);
void add_peers_command(CLI::App& app, Invocation& invocation);
void add_config_command(CLI::App& app, Invocation& invocation);
void add_explain_command(CLI::App& app, Invocation& invocation);
void add_sim_command(CLI::App& app, Invocation& invocation);
void add_bench_command(CLI::App& app, Invocation& invocation);
void add_tune_command(CLI::App& app, Invocation& invocation);
void add_version_command(CLI::App& app, Invocation& invocation);

/// Writes `-np 4` of `nexar run`, which MPI users type, as `--np 4`: CLI11 would read it as -n with
/// the value p. Leaves alone what belongs to the program. `app` must have its commands.
void accept_np(const CLI::App& app, int argc, char** argv);

// Not for users, and in no help.
void add_run_part_command(CLI::App& app, Invocation& invocation);
void add_man_command(CLI::App& app, Invocation& invocation);
void add_completion_command(CLI::App& app, Invocation& invocation);

/// The options of a group without a name are shown nowhere.
inline constexpr const char* kHidden = "";

}  // namespace nexar
