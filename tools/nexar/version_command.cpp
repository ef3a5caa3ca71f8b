// nexar version: prints the installed version.

#include <fmt/format.h>

#include <nexar/version.hpp>

#include "command.hpp"
#include "help.hpp"

namespace nexar {

void add_version_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command = app.add_subcommand("version", "Shows the version of nexar");
    set_help(*command, "[OPTIONS]", "All hosts of a cluster should run the same version.");
    command->callback([&invocation] {
        fmt::print("nexar {}\n", version());
        invocation.exit_code = kExitOk;
    });
}

}  // namespace nexar
