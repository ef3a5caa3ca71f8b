#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/config_flags.hpp"

namespace nexar {

// The commands that work on a seed and its state directory. Each prints its errors and returns the
// exit code. An empty directory name means the default directory.

struct ServeOptions {
    std::string listen{};  // empty: all addresses, port 7400
    std::uint32_t world = 1;
    std::uint32_t max_world = 0;  // 0: no limit
    std::string state_directory{};
    std::string ca_directory{};              // of the first seed
    std::vector<std::string> other_seeds{};  // their addresses
    bool second = false;
    bool restored = false;
};

/// Runs a seed until SIGINT, SIGTERM or SIGHUP.
int serve_seed(const ServeOptions& options, const std::vector<ConfigFlag>& flags);

struct NewTokenOptions {
    std::uint32_t uses = 1;
    std::string life = "1h";
    std::string state_directory{};
};

int create_token(const NewTokenOptions& options);
int list_tokens(const std::string& state_directory, bool json);
/// `id` may be an unambiguous prefix.
int revoke_token(const std::string& state_directory, const std::string& id);

int show_peers(const std::string& state_directory, bool json);

int show_members(const std::string& state_directory, bool json);
/// Removes members from the state of a seed that is not running.
int forget_members(const std::string& state_directory, const std::vector<std::uint32_t>& ranks);

/// Adds --state, which all these commands share.
inline void add_state_option(CLI::App& command, std::string& state_directory) {
    command
        .add_option("--state", state_directory,
                    "Directory of the cluster's keys and tokens; by default "
                    "$XDG_STATE_HOME/nexar or ~/.local/state/nexar")
        ->type_name("DIRECTORY");
}

}  // namespace nexar
