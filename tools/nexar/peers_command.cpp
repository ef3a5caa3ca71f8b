// nexar peers: shows the members of a cluster and the address that each pair uses.

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
        "peers", "Shows the members of a cluster and the address that each pair uses");
    set_help(*command, "[OPTIONS]",
             "Members publish all their addresses, and each pair uses the one over which an\n"
             "authenticated handshake completes first. Members report that address to the\n"
             "seed. Run this command on the seed's machine and as the same user.\n"
             "\n"
             "Examples:\n"
             "  nexar peers\n"
             "  nexar peers --json | jq .");
    command->add_flag("--json", options->json, "Prints JSON");
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = show_peers(options->state_directory, options->json);
    });
}

}  // namespace nexar
