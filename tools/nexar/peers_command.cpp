// nexar peers: who is in a cluster, and over which address each pair talks.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cluster.hpp"
#include "command.hpp"
#include "help.hpp"

namespace nexar {

void add_peers_command(CLI::App& app, Invocation& invocation) {
    struct Options {
        std::string state_directory;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command = app.add_subcommand(
        "peers", "Shows the members of a cluster, and which address won between each pair");
    set_help(*command, "[OPTIONS]",
             "Members publish all their addresses, and each pair takes the one over which an\n"
             "authenticated handshake was done first. What they took is told to the seed, and\n"
             "this command shows it, on the machine of the seed and as its user.\n"
             "\n"
             "Examples:\n"
             "  nexar peers\n"
             "  nexar peers --json | jq .");
    command->add_flag("--json", options->json, "As JSON");
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = show_peers(options->state_directory, options->json);
    });
}

}  // namespace nexar
