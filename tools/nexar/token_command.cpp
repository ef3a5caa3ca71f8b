// nexar token: creates, lists and revokes the tokens that let processes join a cluster.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cluster.hpp"
#include "command.hpp"
#include "help.hpp"

namespace nexar {

namespace {

constexpr const char* kTokenHelp =
    "A token lets processes join a cluster. Its join string holds everything a process\n"
    "needs: the seed's address, the hash that authenticates the seed, and a secret.\n"
    "Anyone who has the string can join, so pass it in an environment variable or a\n"
    "file, and keep it out of logs.\n"
    "\n"
    "Examples:\n"
    "  nexar token create                       # for one process, valid for an hour\n"
    "  nexar token create --uses 16 --ttl 10m   # for 16 processes, valid for ten minutes\n"
    "  nexar token list\n"
    "  nexar token revoke 3f9a21c4              # an id from `nexar token list`\n"
    "\n"
    "These commands change the seed's state directory: run them on the seed's machine\n"
    "and as the same user. A running seed notices the change at once.";

constexpr const char* kCreateHelp =
    "Prints only the join string, so that a shell can assign it to a variable.\n"
    "\n"
    "Examples:\n"
    "  export NEXAR_JOIN=$(nexar token create --uses 4)\n"
    "  nexar token create --uses 4 | ssh node2 'NEXAR_JOIN=$(cat) ./program'\n"
    "\n"
    "Next steps:\n"
    "Pass it to the program as NEXAR_JOIN, where nexar::join() without arguments finds it.";

void add_create(CLI::App& token, Invocation& invocation) {
    const auto options = std::make_shared<NewTokenOptions>();
    CLI::App* const command =
        token.add_subcommand("create", "Creates a token and prints its join string, a secret");
    set_help(*command, "[OPTIONS]", kCreateHelp);
    command
        ->add_option("--uses", options->uses,
                     "Number of processes that may join, a whole number from 1 to 1048576")
        ->type_name("NUMBER")
        ->capture_default_str()
        ->check(whole_number(1, 1U << 20U));
    command->add_option("--ttl", options->life, "How long the token is valid: 10m, 1h, 24h")
        ->type_name("TIME")
        ->capture_default_str();
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] { invocation.exit_code = create_token(*options); });
}

void add_list(CLI::App& token, Invocation& invocation) {
    struct Options {
        std::string state_directory;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command =
        token.add_subcommand("list", "Lists the tokens, without their secrets");
    set_help(*command, "[OPTIONS]",
             "Expired, used-up and revoked tokens stay in the list for a week.");
    command->add_flag("--json", options->json, "Prints JSON");
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = list_tokens(options->state_directory, options->json);
    });
}

void add_revoke(CLI::App& token, Invocation& invocation) {
    struct Options {
        std::string state_directory;
        std::string id;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command = token.add_subcommand(
        "revoke", "Revokes a token; processes that joined with it stay members");
    set_help(*command, "ID [OPTIONS]",
             "ID may be shortened to any prefix that no other token's id has.");
    command->add_option("ID", options->id, "Id of the token, from `nexar token list`")->required();
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = revoke_token(options->state_directory, options->id);
    });
}

}  // namespace

void add_token_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command = app.add_subcommand(
        "token", "Creates, lists and revokes the tokens that let processes join");
    set_help(*command, "COMMAND [OPTIONS]", kTokenHelp);
    command->require_subcommand(1);
    add_create(*command, invocation);
    add_list(*command, invocation);
    add_revoke(*command, invocation);
}

}  // namespace nexar
