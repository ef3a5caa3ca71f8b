// nexar members: shows the members of a cluster, and forgets lost ones.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "command.hpp"
#include "help.hpp"

namespace nexar {

namespace {

constexpr const char* kMembersHelp =
    "Shows the newest view that the seed knows: the members with their ranks, whether each\n"
    "is connected to the seed, the epoch, the witness, and the processes that wait to join.\n"
    "Run this command on the seed's machine and as the same user.\n"
    "\n"
    "Examples:\n"
    "  nexar members\n"
    "  nexar members --json | jq .\n"
    "  nexar members forget 1 3             # after the loss of a majority\n"
    "\n"
    "Next steps:\n"
    "nexar peers shows the address that each pair of members uses.";

constexpr const char* kForgetHelp =
    "The members of a cluster agree on its changes by majority. When a majority of the\n"
    "voters is lost for good, the others cannot go on: their calls fail with\n"
    "minority_partition. Then stop the seed, forget the lost members, and start the seed\n"
    "again; the others continue without them. If all members are lost, forget all of them,\n"
    "and a new cluster can form.\n"
    "\n"
    "Forget only members whose processes have ended. If they are alive somewhere and can\n"
    "reach each other, they continue too, and the cluster is split in two: nexar cannot\n"
    "prevent it, because it cannot see them either.\n"
    "\n"
    "Examples:\n"
    "  nexar members forget 1 3";

void add_forget(CLI::App& members, Invocation& invocation) {
    struct Options {
        std::string state_directory;
        std::vector<std::uint32_t> ranks;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command = members.add_subcommand(
        "forget", "Removes lost members by force, when the others have no majority");
    set_help(*command, "RANK... [OPTIONS]", kForgetHelp);
    command->add_option("RANK", options->ranks, "Ranks from `nexar members`")
        ->type_name("RANK")
        ->required()
        ->check(whole_number(0, 0x7fff'fffe));
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = forget_members(options->state_directory, options->ranks);
    });
}

}  // namespace

void add_members_command(CLI::App& app, Invocation& invocation) {
    struct Options {
        std::string state_directory;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command =
        app.add_subcommand("members", "Shows the members of a cluster, and forgets lost ones");
    set_help(*command, "[COMMAND] [OPTIONS]", kMembersHelp);
    command->add_flag("--json", options->json, "Prints JSON");
    add_state_option(*command, options->state_directory);
    add_forget(*command, invocation);
    command->callback([options, command, &invocation] {
        if (!command->get_subcommands().empty()) return;
        invocation.exit_code = show_members(options->state_directory, options->json);
    });
}

}  // namespace nexar
