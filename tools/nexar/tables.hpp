#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace nexar {

// The commands and options known to CLI11, for man pages and shell completion.

struct OptionRow {
    std::vector<std::string> names;  // "-n", "--ranks"
    std::string value{};             // "RANKS"; empty for a flag
    std::string meaning{};
};

struct CommandRow {
    std::string path;  // "nexar token create"
    std::string name;  // "create"
    std::string summary;
    std::string arguments;  // of the usage line
    std::string text;       // below the options in the help
    std::vector<OptionRow> options;
    std::vector<CommandRow> commands;
};

/// The command with all of its visible options and subcommands.
CommandRow command_table(const CLI::App& app, const std::string& parent = "");

}  // namespace nexar
