// nexar bench: how long collectives and messages take here, with the data checked.

#include <cstdint>
#include <memory>
#include <string>

#include "base/try.hpp"
#include "bench/launch.hpp"
#include "bench/measurement.hpp"
#include "bench/plan.hpp"
#include "bench/report.hpp"
#include "command.hpp"
#include "help.hpp"
#include "runtime/collective_profile.hpp"

namespace nexar {

namespace {

using bench::Plan;
using bench::Question;
using bench::Report;

constexpr const char* kBenchHelp =
    "With -n, so many processes are started on this machine, and a seed for them.\n"
    "Without, it is a rank itself, of the world that a launcher made.\n"
    "\n"
    "Sizes are counted as nccl-tests does: the whole vector; of all_gather and\n"
    "gather all of the output, of reduce_scatter, scatter and all_to_all all of the\n"
    "input of a rank. Times are those of the slowest rank. Operations after which\n"
    "a rank could run ahead, those with a root and scans, have a barrier before\n"
    "each iteration, outside of the time. latency is half of a round trip between\n"
    "ranks 0 and 1; bandwidth has 64 messages on the way from 0 to 1, then an answer;\n"
    "exchange is one message each way between them at the same time.\n"
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
    bench::add_rank_options(command, question.ranks);
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
    command
        .add_option("-o,--op", question.redop, "How elements are folded: sum, product, min, ...")
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
    command
        .add_option("--warmup", question.warmup,
                    "Iterations before those that count; with --iters 0 at least so many")
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
    command.add_option("--format", question.format, "table, osu")
        ->type_name("FORMAT")
        ->capture_default_str();
    command.add_option("--json", question.json_path, "Also writes each row to this file, as JSON")
        ->type_name("FILE");
}

schedule::Links links_of(const Communicator& world) {
    std::vector<std::uint32_t> hosts;
    hosts.reserve(static_cast<std::size_t>(world.size()));
    for (int rank = 0; rank < world.size(); ++rank) {
        hosts.push_back(static_cast<std::uint32_t>(world.host(rank)));
    }
    return schedule::Links(hosts);
}

int measure_all(const Plan& plan, const Communicator& world, const Config& config) {
    std::unique_ptr<Report> report;
    if (world.rank() == 0) {
        report = std::make_unique<Report>(plan, static_cast<std::uint32_t>(world.size()),
                                          std::string(config.choice("protection")));
    }
    for (const std::uint64_t size : plan.sizes) {
        const bench::Measured measured = bench::measure(plan, world, size);
        if (report) report->row(measured);
    }
    // Only one rank fails for wrong data: the others would be said to have failed, too.
    return report == nullptr || report->finish() ? kExitOk : kExitFailure;
}

Result<int> run_bench(const Question& question, const CLI::App& command,
                      const Invocation& invocation) {
    NEXAR_TRY_VALUE(plan, bench::understood(question));
    const bench::Job job{.fits = [&](std::uint32_t world) { return bench::fits(plan, world); },
                         .take_part =
                             [&](const Communicator& world, const Config& config) {
                                 plan.profile = runtime::collective_profile(config).value();
                                 plan.profile.links = links_of(world);
                                 return measure_all(plan, world, config);
                             }};
    return bench::run_job(job, question.ranks, command, invocation);
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
    const auto question = std::make_shared<Question>();
    CLI::App* const command = app.add_subcommand(
        "bench", "Measures collectives and messages between real processes, and checks the data");
    set_help(*command, "OPERATION [-n RANKS] [OPTIONS]", kBenchHelp);
    add_what_options(*command, *question);
    add_how_options(*command, *question);
    command->callback([question, command, &invocation] {
        bench::answer(*command, invocation,
                      [&] { return run_bench(*question, *command, invocation); });
    });
}

}  // namespace nexar
