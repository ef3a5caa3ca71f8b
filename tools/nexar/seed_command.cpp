// nexar seed: the process that new members of a cluster contact first.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cluster.hpp"
#include "command.hpp"
#include "help.hpp"

namespace nexar {

namespace {

constexpr const char* kSeedHelp =
    "The seed admits members, assigns ranks and keeps the list of members. It is never\n"
    "on the data path: once all members have joined, it may even be down for a while.\n"
    "It keeps the cluster's keys, tokens and members in a directory that only its owner\n"
    "can read; a restarted seed continues with this state.\n"
    "\n"
    "Examples:\n"
    "  nexar seed --world 4                 # on one machine of the cluster\n"
    "  nexar token create --uses 4          # on the same machine: prints the join string\n"
    "  NEXAR_JOIN=... ./program             # on each machine\n"
    "\n"
    "Firewalls must allow the seed's UDP port and the members' own UDP ports. SIGINT or\n"
    "SIGTERM ends the seed; members that have joined keep running.\n"
    "\n"
    "Next steps:\n"
    "nexar token creates the string that members join with; nexar peers shows the members.";

}  // namespace

void add_seed_command(CLI::App& app, Invocation& invocation) {
    const auto options = std::make_shared<ServeOptions>();
    CLI::App* const command =
        app.add_subcommand("seed", "Runs the seed of a cluster, which processes contact to join");
    set_help(*command, "--world RANKS [OPTIONS]", kSeedHelp);
    command
        ->add_option(
            "--listen", options->listen,
            "Address and UDP port, such as 10.0.0.1:7400; by default all addresses, port 7400")
        ->type_name("ADDRESS");
    command
        ->add_option("--world", options->world,
                     "Number of ranks in the cluster, a whole number from 1 to 1048576")
        ->type_name("RANKS")
        ->required()
        ->check(whole_number(1, 1U << 20U));
    add_state_option(*command, options->state_directory);
    command->callback(
        [options, &invocation] { invocation.exit_code = serve_seed(*options, invocation.flags); });
}

}  // namespace nexar
