#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/config_flags.hpp"

namespace nexar {

// What the commands on a seed and its state directory do; each returns the exit code and has said
// what went wrong. An empty directory is the default one.

struct ServeOptions {
    std::string listen{};  // empty: all addresses, port 7400
    std::uint32_t world = 1;
    std::string state_directory{};
};

/// Hosts a seed until SIGINT or SIGTERM.
int serve_seed(const ServeOptions& options, const std::vector<ConfigFlag>& flags);

struct NewTokenOptions {
    std::uint32_t uses = 1;
    std::string life = "1h";
    std::string state_directory{};
};

int create_token(const NewTokenOptions& options);
int list_tokens(const std::string& state_directory, bool json);
/// `id` may be the beginning of one.
int revoke_token(const std::string& state_directory, const std::string& id);

int show_peers(const std::string& state_directory, bool json);

/// --state, the same everywhere.
inline void add_state_option(CLI::App& command, std::string& state_directory) {
    command
        .add_option("--state", state_directory,
                    "Where the seed keeps the cluster's keys and tokens; by default "
                    "$XDG_STATE_HOME/nexar or ~/.local/state/nexar")
        ->type_name("DIRECTORY");
}

}  // namespace nexar
