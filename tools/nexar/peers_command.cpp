// nexar peers: shows the members of a cluster and how each pair is connected.

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
        "peers", "Shows the members of a cluster and how each pair is connected");
    set_help(
        *command, "[OPTIONS]",
        "Members publish all their addresses, and a pair that connects directly uses the one over "
        "which an authenticated handshake completes first. Other pairs communicate through "
        "relays: the list shows the first relay and the number of hops. Members report this to "
        "the seed. Run this command on the seed's machine and as the same user.\n"
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
