// nexar bench: measures collectives and messages, and checks the data.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/try.hpp"
#include "bench/ceiling.hpp"
#include "bench/launch.hpp"
#include "bench/links.hpp"
#include "bench/measurement.hpp"
#include "bench/plan.hpp"
#include "bench/report.hpp"
#include "command.hpp"
#include "engine/memory_layout.hpp"
#include "help.hpp"
#include "runtime/collective_profile.hpp"

namespace nexar {

namespace {

using bench::Plan;
using bench::Question;
using bench::Report;

constexpr const char* kBenchHelp =
    "With -n, nexar bench starts that many processes and a seed on this machine, each\n"
    "bound to its own share of the processors if there are enough.\n"
    "Without -n, it is one rank of a world that a launcher started.\n"
    "\n"
    "Sizes are counted as in nccl-tests: the whole vector, which is the complete output\n"
    "of all_gather and gather, and the complete input of one rank of reduce_scatter,\n"
    "scatter and all_to_all. Times are those of the slowest rank. If ranks could run\n"
    "ahead of each other, as in scans and operations with a root, an untimed barrier\n"
    "precedes each iteration. latency is half the round-trip time between ranks 0 and\n"
    "1; bandwidth sends 64 messages from rank 0 to rank 1 and then waits for a reply;\n"
    "exchange sends one message in each direction between them at the same time.\n"
    "\n"
    "cpu/GB is the processor time of all ranks per GB that they must send to each other.\n"
    "%ceil compares the median time with the time in which all ranks together, or one\n"
    "for latency and bandwidth, two for exchange, would read all inputs and write all\n"
    "outputs once at the rate of memcpy, measured at the start with vectors of this size.\n"
    "\n"
    "Examples:\n"
    "  nexar bench all_reduce -n 4\n"
    "  nexar bench broadcast -n 2 --sizes \"8 64KiB 1MiB\" --seconds 1 --iters 0\n"
    "  nexar bench latency -n 2 -e 64KiB --format osu\n"
    "  nexar bench all_reduce -n 8 --link shm --memory shared\n"
    "  nexar run --host node1:2,node2:2 -- nexar bench all_reduce\n"
    "\n"
    "The exit code is 1 if any element is wrong.";

void add_what_options(CLI::App& command, Question& question) {
    command.add_option("operation", question.subject, bench::subject_names())
        ->required()
        ->type_name("OPERATION");
    bench::add_rank_options(command, question.ranks);
    command.add_option("-b,--begin", question.smallest, "Smallest size")
        ->type_name("SIZE")
        ->capture_default_str();
    command.add_option("-e,--end", question.largest, "Largest size")
        ->type_name("SIZE")
        ->capture_default_str();
    command.add_option("-f,--factor", question.factor, "Factor from one size to the next")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--sizes", question.sizes,
                    "List of sizes that replaces -b, -e and -f: \"8 64KiB 1MiB\"")
        ->type_name("SIZES");
    command
        .add_option("-d,--datatype", question.dtype,
                    "Element type: i8, u8, ..., f16, bf16, f32, f64")
        ->type_name("TYPE")
        ->capture_default_str();
    command.add_option("-o,--op", question.redop, "Reduction operator: sum, product, min, ...")
        ->type_name("OPERATOR")
        ->capture_default_str();
    command.add_option("-r,--root", question.root, "Root rank of operations that have one")
        ->type_name("RANK")
        ->capture_default_str();
}

void add_how_options(CLI::App& command, Question& question) {
    command
        .add_option("--iters", question.iterations,
                    "Iterations per size; 0: as many as fit in --seconds")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--warmup", question.warmup,
                    "Untimed iterations before the timed ones; the minimum if --iters is 0")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--seconds", question.seconds,
                    "Time limit per size; reduces the number of iterations if necessary")
        ->type_name("SECONDS");
    command.add_option("-c,--check", question.check, "1: counts wrong elements; 0: does not check")
        ->type_name("0|1")
        ->capture_default_str();
    command
        .add_option("--link", question.ranks.link,
                    "Link between the ranks: auto, quic, shm; by default the value of the setting")
        ->type_name("LINK");
    command
        .add_option("--memory", question.memory,
                    "Memory of inputs and outputs: private; shared: buffers that other ranks of "
                    "the host read in place")
        ->type_name("KIND")
        ->capture_default_str();
    command.add_option("--format", question.format, "Output format: table, osu")
        ->type_name("FORMAT")
        ->capture_default_str();
    command
        .add_option("--json", question.json_path,
                    "Also writes each row to this file as a JSON object")
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

int measure_all(Plan& plan, const Node& node, const Config& config) {
    const Communicator world = node.world();
    const bench::LinkUse links = bench::links_between(node);
    if (const auto layout = engine::MemoryLayout::of(config.size("collective_memory"));
        layout && links.all_share_memory()) {
        plan.profile.memory.slot_bytes = layout->slot_bytes;
        plan.profile.memory.buffer_bytes = layout->buffer_bytes;
    }
    if (const auto fine = links.require(config.choice("link")); !fine) {
        if (world.rank() == 0) throw Error(fine.error());
        return kExitOk;  // all ranks know, and rank 0 reports it
    }
    const std::vector<double> rates = bench::copy_rates(plan, world);
    std::unique_ptr<Report> report;
    if (world.rank() == 0) {
        report = std::make_unique<Report>(plan, static_cast<std::uint32_t>(world.size()),
                                          std::string(config.choice("protection")), links.text());
    }
    for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
        const bench::Measured measured = bench::measure(plan, world, plan.sizes[i]);
        if (report) report->row(measured, rates[i]);
    }
    // Only rank 0 fails because of wrong data; otherwise every rank would be reported as failed.
    return report == nullptr || report->finish() ? kExitOk : kExitFailure;
}

Result<int> run_bench(const Question& question, const CLI::App& command,
                      const Invocation& invocation) {
    NEXAR_TRY_VALUE(plan, bench::understood(question));
    const bench::Job job{.fits = [&](std::uint32_t world) { return bench::fits(plan, world); },
                         .take_part =
                             [&](const Node& node, const Config& config) {
                                 plan.profile = runtime::collective_profile(config).value();
                                 plan.profile.links = links_of(node.world());
                                 if (plan.shared) plan.allocator = &node;
                                 return measure_all(plan, node, config);
                             }};
    return bench::run_job(job, question.ranks, command, invocation);
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
    const auto question = std::make_shared<Question>();
    CLI::App* const command = app.add_subcommand(
        "bench", "Measures collectives and messages between processes, and checks the data");
    set_help(*command, "OPERATION [-n RANKS] [OPTIONS]", kBenchHelp);
    add_what_options(*command, *question);
    add_how_options(*command, *question);
    command->callback([question, command, &invocation] {
        bench::answer(*command, invocation,
                      [&] { return run_bench(*question, *command, invocation); });
    });
}

}  // namespace nexar
