// nexar seed: the process that new members of a cluster contact first.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cluster.hpp"
#include "command.hpp"
#include "help.hpp"
#include "wire/limits.hpp"

namespace nexar {

namespace {

constexpr const char* kSeedHelp =
    "The seed forms the cluster. Later it lets further processes join, and it is the\n"
    "witness whose vote counts when the number of members is even. It is never on the\n"
    "data path: once the cluster has formed, the seed may even be down for a while.\n"
    "It keeps the cluster's keys, tokens, members and its votes in a directory that only\n"
    "its owner can read; a restarted seed continues with this state.\n"
    "\n"
    "Examples:\n"
    "  nexar seed --world 4                 # on one machine of the cluster\n"
    "  nexar token create --uses 4          # on the same machine: prints the join string\n"
    "  NEXAR_JOIN=... ./program             # on each machine\n"
    "\n"
    "A second seed takes over when the first one is gone for good:\n"
    "  nexar seed --world 4 --other 10.0.0.2:7400                # on 10.0.0.1\n"
    "  nexar seed --world 4 --second --ca DIR --other 10.0.0.1:7400    # on 10.0.0.2,\n"
    "where DIR has copies of ca.key and ca.pem from the first seed's state directory.\n"
    "\n"
    "Firewalls must allow the seed's UDP port and the members' own UDP ports. SIGINT or\n"
    "SIGTERM ends the seed; members that have joined keep running.\n"
    "\n"
    "Next steps:\n"
    "nexar token creates the string that members join with; nexar members shows the members.";

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
                     "Number of ranks with which the cluster forms, a whole number from 1 to 16384")
        ->type_name("RANKS")
        ->required()
        ->check(whole_number(1, wire::kMaxViewMembers));
    command
        ->add_option("--max", options->max_world,
                     "Most ranks that the cluster may ever have at the same time, a whole number "
                     "from 1 to 16384, which is also the default")
        ->type_name("RANKS")
        ->check(whole_number(1, wire::kMaxViewMembers));
    add_state_option(*command, options->state_directory);
    command
        ->add_option("--other", options->other_seeds,
                     "Address of another seed of this cluster; join strings name it too. May be "
                     "given several times")
        ->type_name("ADDRESS");
    command->add_flag("--second", options->second,
                      "Stands in for the first seed: never forms a cluster, and learns the members "
                      "from them");
    command
        ->add_option("--ca", options->ca_directory,
                     "Directory with ca.key and ca.pem of the cluster, copied into the state "
                     "directory at the first start")
        ->type_name("DIRECTORY");
    command->add_flag("--restored", options->restored,
                      "The state directory comes from a snapshot of a disk or a machine: the seed "
                      "does not vote until the members accept it again");
    command->callback(
        [options, &invocation] { invocation.exit_code = serve_seed(*options, invocation.flags); });
}

}  // namespace nexar
