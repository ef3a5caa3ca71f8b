// nexar token: who may join a cluster.

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
    "A token lets processes join a cluster. Its join string holds all that a process\n"
    "needs: where the seed is, how to know it, and a secret. Whoever has the string can\n"
    "join, so it goes into an environment variable or a file, and into no log.\n"
    "\n"
    "Examples:\n"
    "  nexar token create                       # one process, within an hour\n"
    "  nexar token create --uses 16 --ttl 10m   # sixteen of them, within ten minutes\n"
    "  nexar token list\n"
    "  nexar token revoke 3f9a21c4...           # as `nexar token list` names it\n"
    "\n"
    "These work on the seed's state directory, on the machine of the seed and as its\n"
    "user; a seed that runs takes notice at once.";

constexpr const char* kCreateHelp =
    "Prints the join string and nothing else: it can go straight into a variable.\n"
    "\n"
    "Examples:\n"
    "  export NEXAR_JOIN=$(nexar token create --uses 4)\n"
    "  nexar token create --uses 4 | ssh node2 'NEXAR_JOIN=$(cat) ./program'\n"
    "\n"
    "What next:\n"
    "Give it to a program as NEXAR_JOIN; nexar::join() without arguments finds it there.";

void add_create(CLI::App& token, Invocation& invocation) {
    const auto options = std::make_shared<NewTokenOptions>();
    CLI::App* const command =
        token.add_subcommand("create", "Makes a token and prints its join string, a secret");
    set_help(*command, "[OPTIONS]", kCreateHelp);
    command
        ->add_option("--uses", options->uses,
                     "How many processes may join with it, a whole number from 1 to 1048576")
        ->type_name("NUMBER")
        ->capture_default_str()
        ->check(whole_number(1, 1U << 20U));
    command->add_option("--ttl", options->life, "How long it is good: 10m, 1h, 24h")
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
        token.add_subcommand("list", "Shows the tokens, without their secrets");
    set_help(*command, "[OPTIONS]",
             "A token that expired, was used up or revoked stays in the list for a week.");
    command->add_flag("--json", options->json, "As JSON");
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
    CLI::App* const command =
        token.add_subcommand("revoke", "Makes a token worthless; who joined with it stays");
    set_help(*command, "ID [OPTIONS]",
             "ID is the one of `nexar token list`, or its beginning where that is enough to tell.");
    command->add_option("ID", options->id, "Which token, as `nexar token list` names it")
        ->required();
    add_state_option(*command, options->state_directory);
    command->callback([options, &invocation] {
        invocation.exit_code = revoke_token(options->state_directory, options->id);
    });
}

}  // namespace

void add_token_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command =
        app.add_subcommand("token", "Makes, lists and revokes the tokens that processes join with");
    set_help(*command, "COMMAND [OPTIONS]", kTokenHelp);
    command->require_subcommand(1);
    add_create(*command, invocation);
    add_list(*command, invocation);
    add_revoke(*command, invocation);
}

}  // namespace nexar
