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
    "The seed lets members in, gives out ranks and keeps the list of members. It is\n"
    "never on the way of data: once all have joined, it may even be away for a while.\n"
    "What it keeps (the cluster's keys, tokens, who has joined) is in a directory that\n"
    "only its owner can read; a seed that is started again goes on with it.\n"
    "\n"
    "Examples:\n"
    "  nexar seed --world 4                 # on one machine of the cluster\n"
    "  nexar token create --uses 4          # beside it: prints the join string\n"
    "  NEXAR_JOIN=... ./program             # on each machine\n"
    "\n"
    "The port is UDP; a firewall must let it through, and the members' own ports.\n"
    "SIGINT or SIGTERM ends the seed; members that have joined go on.\n"
    "\n"
    "What next:\n"
    "nexar token gives the string that members join with, nexar peers shows who is there.";

}  // namespace

void add_seed_command(CLI::App& app, Invocation& invocation) {
    const auto options = std::make_shared<ServeOptions>();
    CLI::App* const command =
        app.add_subcommand("seed", "Hosts the seed of a cluster until it is told to end");
    set_help(*command, "--world RANKS [OPTIONS]", kSeedHelp);
    command
        ->add_option("--listen", options->listen,
                     "Address and UDP port, 10.0.0.1:7400; by default all addresses, port 7400")
        ->type_name("ADDRESS");
    command
        ->add_option("--world", options->world,
                     "How many ranks the cluster has, a whole number from 1 to 1048576")
        ->type_name("RANKS")
        ->required()
        ->check(whole_number(1, 1U << 20U));
    add_state_option(*command, options->state_directory);
    command->callback(
        [options, &invocation] { invocation.exit_code = serve_seed(*options, invocation.flags); });
}

}  // namespace nexar
