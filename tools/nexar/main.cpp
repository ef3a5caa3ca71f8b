// The nexar command: everything an operator does from a shell.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nexar/version.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "command.hpp"
#include "help.hpp"
#include "runtime/config_sources.hpp"

namespace {

/// Everything after a lone `--` belongs to the program that `nexar run` starts.
std::vector<std::string> take_program(int& argc, char** argv) {
    char** const end = argv + argc;
    char** const mark = std::find(argv, end, std::string_view("--"));
    if (mark == end) return {};
    argc = static_cast<int>(mark - argv);
    return {mark + 1, end};
}

/// True if the word in the place of a command is not one; then prints an error that suggests the
/// nearest command.
bool is_misspelled(const CLI::App& app, int argc, char** argv) {
    const CLI::App* command = &app;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const auto nested = command->get_subcommands([](const CLI::App*) { return true; });
        if (nested.empty() || word.starts_with('-')) return false;
        const auto found = std::ranges::find(nested, word, &CLI::App::get_name);
        // `nexar sim` takes an operation or a command.
        const auto words =
            command->get_options([](const CLI::Option* one) { return one->get_positional(); });
        if (found == nested.end() && !words.empty()) return false;
        if (found != nested.end()) {
            command = *found;
            continue;
        }
        std::vector<std::string> names;
        for (const CLI::App* one : nested) {
            if (!one->get_group().empty()) names.push_back(one->get_name());
        }
        const std::vector<std::string_view> candidates(names.begin(), names.end());
        const auto meant = nexar::nearest(word, candidates);
        const std::string path = command == &app ? "nexar" : "nexar " + command->get_name();
        fmt::print(stderr, "{}: there is no command {}.{} `{} --help` lists all commands.\n", path,
                   nexar::in_quotes(word),
                   meant ? fmt::format(" Did you mean \"{}\"?", *meant) : "", path);
        return true;
    }
    return false;
}

int run(int argc, char** argv) {
    nexar::Invocation invocation;
    invocation.program = take_program(argc, argv);
    invocation.flags = nexar::take_flags(argc, argv);

    CLI::App app("Runs and inspects nexar clusters.", "nexar");
    app.set_version_flag("--version", "nexar " + std::string(nexar::version()));
    nexar::set_help(
        app, "COMMAND [OPTIONS]",
        "Every setting listed by `nexar config` is also a flag: --nexar-log-level=debug.\n"
        "\n"
        "Examples:\n"
        "  nexar run -n 4 -- ./program       # four ranks on this machine\n"
        "  nexar seed --world 4              # a cluster for processes started by hand\n"
        "  nexar token create --uses 4       # the secret with which they join it\n"
        "\n"
        "Next steps:\n"
        "`nexar COMMAND --help` explains a command. docs/start.md is an introduction.\n"
        "\n"
        "Exit codes: 0 success, 1 failure, 2 invalid command line.");
    nexar::add_run_command(app, invocation);
    nexar::add_seed_command(app, invocation);
    nexar::add_token_command(app, invocation);
    nexar::add_members_command(app, invocation);
    nexar::add_peers_command(app, invocation);
    nexar::add_config_command(app, invocation);
    nexar::add_explain_command(app, invocation);
    nexar::add_sim_command(app, invocation);
    nexar::add_bench_command(app, invocation);
    nexar::add_tune_command(app, invocation);
    nexar::add_version_command(app, invocation);
    nexar::add_run_part_command(app, invocation);
    nexar::add_man_command(app, invocation);
    nexar::add_completion_command(app, invocation);
    nexar::accept_np(app, argc, argv);
    if (is_misspelled(app, argc, argv)) return nexar::kExitUsage;
    try {
        app.parse(argc, argv);
        // CLI11's own check would report a misspelled subcommand as a missing one.
        if (app.get_subcommands().empty()) throw CLI::RequiredError("A subcommand");
        if (!invocation.program.empty() && !app.got_subcommand("run")) {
            throw CLI::ExtrasError("nexar", invocation.program);
        }
    } catch (const CLI::ParseError& error) {
        const int code = app.exit(error);  // prints the help, the version or the error
        return code == 0 ? nexar::kExitOk : nexar::kExitUsage;
    }
    return invocation.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const int code = run(argc, argv);
        // Lost output is a failure: a full disk, a closed pipe.
        if (std::fflush(stdout) != 0 && code == nexar::kExitOk) {
            std::fputs("nexar: cannot write to standard output\n", stderr);
            return nexar::kExitFailure;
        }
        return code;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "nexar: %s\n", error.what());
        return nexar::kExitFailure;
    }
}
