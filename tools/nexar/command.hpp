#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/config_flags.hpp"

namespace nexar {

// Exit codes of the nexar command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // a valid command that failed
inline constexpr int kExitUsage = 2;    // an invalid command line

/// State shared by all subcommands. Lives as long as the program.
struct Invocation {
    std::vector<ConfigFlag> flags;
    std::vector<std::string> program;  // the words after a lone `--`
    int exit_code = kExitOk;
};

// One file per subcommand. Each function adds its subcommand, whose callback sets the exit code.
void add_seed_command(CLI::App& app, Invocation& invocation);
void add_token_command(CLI::App& app, Invocation& invocation);
void add_run_command(CLI::App& app, Invocation& invocation);
void add_members_command(CLI::App& app, Invocation& invocation);
void add_peers_command(CLI::App& app, Invocation& invocation);
void add_config_command(CLI::App& app, Invocation& invocation);
void add_explain_command(CLI::App& app, Invocation& invocation);
void add_sim_command(CLI::App& app, Invocation& invocation);
/// Adds `sim chaos`.
void add_chaos_command(CLI::App& sim, Invocation& invocation);
/// Adds `sim topologies`.
void add_topologies_command(CLI::App& sim, Invocation& invocation);
void add_bench_command(CLI::App& app, Invocation& invocation);
void add_tune_command(CLI::App& app, Invocation& invocation);
void add_version_command(CLI::App& app, Invocation& invocation);

/// Rewrites the `-np 4` that MPI users type after `nexar run` as `--np 4`, because CLI11 would read
/// it as -n with the value p. Leaves the program's arguments alone. Call it after all commands have
/// been added to `app`.
void accept_np(const CLI::App& app, int argc, char** argv);

// Internal commands, hidden from the help.
void add_run_part_command(CLI::App& app, Invocation& invocation);
void add_man_command(CLI::App& app, Invocation& invocation);
void add_completion_command(CLI::App& app, Invocation& invocation);

/// CLI11 does not show the members of a group with an empty name.
inline constexpr const char* kHidden = "";

}  // namespace nexar
