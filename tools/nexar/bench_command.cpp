// nexar bench: how long collectives and messages take here, with the data checked.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "bench/launch.hpp"
#include "bench/plan.hpp"
#include "command.hpp"
#include "help.hpp"
#include "run/flag_settings.hpp"
#include "runtime/config_sources.hpp"

namespace nexar {

namespace {

using bench::Question;

constexpr const char* kRanks = "--ranks";

constexpr const char* kHelp =
    "With -n, so many processes are started on this machine, and a seed for them.\n"
    "Without, it is a rank itself, of the world that a launcher made.\n"
    "\n"
    "Sizes are counted as nccl-tests does: the whole vector; of all_gather and\n"
    "gather all of the output, of reduce_scatter, scatter and all_to_all all of the\n"
    "input of a rank. Times are those of the slowest rank. Operations after which\n"
    "a rank could run ahead, those with a root and scans, have a barrier before\n"
    "each iteration, outside of the time. latency is half of a round trip between\n"
    "ranks 0 and 1; bandwidth has 64 messages on the way from 0 to 1, then an answer.\n"
    "\n"
    "Examples:\n"
    "  nexar bench all_reduce -n 4\n"
    "  nexar bench broadcast -n 2 --sizes \"8 64KiB 1MiB\" --seconds 1 --iters 0\n"
    "  nexar bench latency -n 2 -e 64KiB --format osu\n"
    "  nexar run --host node1:2,node2:2 -- nexar bench all_reduce\n"
    "\n"
    "The exit code is 1 when any element is wrong.";

void add_what_options(CLI::App& command, Question& question) {
    command.add_option("operation", question.subject, bench::subject_names())
        ->required()
        ->type_name("OPERATION");
    command
        .add_option(std::string("-n,") + kRanks, question.ranks,
                    "Starts so many processes on this machine")
        ->type_name("RANKS");
    command.add_option("-b,--begin", question.smallest, "The smallest size")
        ->type_name("SIZE")
        ->capture_default_str();
    command.add_option("-e,--end", question.largest, "The largest size")
        ->type_name("SIZE")
        ->capture_default_str();
    command.add_option("-f,--factor", question.factor, "From one size to the next")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--sizes", question.sizes, "These sizes instead: \"8 64KiB 1MiB\"")
        ->type_name("SIZES");
    command.add_option("-d,--datatype", question.dtype, "i8, u8, ..., f16, bf16, f32, f64")
        ->type_name("TYPE")
        ->capture_default_str();
    command.add_option("-o,--op", question.redop, "How elements are folded: sum, prod, min, ...")
        ->type_name("OPERATOR")
        ->capture_default_str();
    command.add_option("-r,--root", question.root, "Of operations that have one")
        ->type_name("RANK")
        ->capture_default_str();
}

void add_how_options(CLI::App& command, Question& question) {
    command
        .add_option("--iters", question.iterations,
                    "Iterations of each size; 0: as many as fit --seconds")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--warmup", question.warmup, "Iterations before those that count")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--seconds", question.seconds, "Fewer iterations where they take longer")
        ->type_name("SECONDS");
    command.add_option("-c,--check", question.check, "1: counts wrong elements; 0: does not look")
        ->type_name("0|1")
        ->capture_default_str();
    command.add_option("--link", question.link, "auto, quic, shm")
        ->type_name("LINK")
        ->capture_default_str();
    command.add_option("--protection", question.protection, "full, none; else as it is set")
        ->type_name("KIND");
    command.add_option("--format", question.format, "table, osu")
        ->type_name("FORMAT")
        ->capture_default_str();
    command.add_option("--json", question.json_path, "Also writes each row to this file, as JSON")
        ->type_name("FILE");
}

/// The command line again, for a rank: without the number of ranks, which it finds out by itself.
std::vector<std::string> rank_arguments(const CLI::App& command) {
    std::vector<std::string> arguments{command.get_name()};
    for (const CLI::Option* option : command.parse_order()) {
        if (option->check_name(kRanks)) continue;
        if (option->nonpositional()) arguments.push_back(option->get_name());
        arguments.insert(arguments.end(), option->results().begin(), option->results().end());
    }
    return arguments;
}

Result<int> run_bench(const Question& question, const CLI::App& command,
                      const Invocation& invocation) {
    NEXAR_TRY_VALUE(plan, bench::understood(question));
    auto settings = run::flag_settings(invocation.flags);
    if (!question.protection.empty()) {
        std::erase_if(settings, [](const auto& one) { return one.first == "protection"; });
        settings.emplace_back("protection", question.protection);
    }
    if (!question.ranks) return bench::take_part(plan, settings);
    NEXAR_TRY(bench::fits(plan, *question.ranks));
    NEXAR_TRY_VALUE(config, load_config({}, invocation.flags));
    (void)config;  // a bad setting is to be said once, and not by every rank
    return bench::launch(*question.ranks, rank_arguments(command), settings);
}

void start(const Question& question, const CLI::App& command, Invocation& invocation) {
    const auto code = [&]() -> Result<int> {
        try {
            return run_bench(question, command, invocation);
        } catch (const Error& error) {
            return error;
        }
    }();
    if (code) {
        invocation.exit_code = *code;
        return;
    }
    if (code.error().code() == Errc::invalid_argument) {
        throw CLI::ValidationError("bench", code.error().cause());
    }
    fmt::print(stderr, "nexar bench: {}\n", code.error().what());
    invocation.exit_code = kExitFailure;
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
    const auto question = std::make_shared<Question>();
    CLI::App* const command = app.add_subcommand(
        "bench", "Measures collectives and messages between real processes, and checks the data");
    set_help(*command, "OPERATION [-n RANKS] [OPTIONS]", kHelp);
    add_what_options(*command, *question);
    add_how_options(*command, *question);
    command->callback([question, command, &invocation] { start(*question, *command, invocation); });
}

}  // namespace nexar
