// nexar sim chaos: a whole cluster under faults on virtual time.

#include "chaos/run.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nexar/log.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "help.hpp"
#include "routing/topology.hpp"

namespace nexar {

namespace {

struct ChaosQuestion {
    chaos::RunOptions run{};
    std::uint64_t seeds = 1;
    std::vector<std::size_t> without{};
    bool trace = false;
};

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void print_faults(const chaos::RunOptions& options) {
    for (const std::string& line : chaos::faults_of(options)) print(line + "\n");
}

/// Prints the smallest set of faults that breaks the same rule.
void explain(const chaos::RunOptions& options, const chaos::RunResult& result) {
    print("\nLooking for a smaller set of faults that breaks the same rule.\n");
    const chaos::RunOptions smallest = chaos::minimised(options, result.rule);
    print_faults(smallest);
    print(chaos::summary_of(smallest, chaos::run(smallest)));
    print(fmt::format("Repeat it with:\n  {}\n", chaos::command_of(smallest)));
}

/// Returns false if a rule was broken.
bool run_one(const chaos::RunOptions& options) {
    print_faults(options);
    const chaos::RunResult result = chaos::run(options);
    print(chaos::summary_of(options, result));
    if (result.rule.empty()) return true;
    explain(options, result);
    return false;
}

bool run_many(chaos::RunOptions options, std::uint64_t seeds) {
    std::uint64_t failed = 0;
    std::uint64_t lost = 0;
    for (std::uint64_t i = 0; i < seeds; ++i, ++options.seed) {
        const chaos::RunResult result = chaos::run(options);
        lost += result.beyond_repair ? 1 : 0;
        if (result.rule.empty()) continue;
        ++failed;
        print_faults(options);
        print(chaos::summary_of(options, result));
        explain(options, result);
    }
    print(fmt::format("{} seeds: {} broke a rule, {} ended beyond repair\n", seeds, failed, lost));
    return failed == 0;
}

CLI::Validator known_topology() {
    return {[](std::string& text) {
                const auto topology = routing::Topology::parse(text);
                return topology ? std::string() : std::string(topology.error().cause());
            },
            ""};
}

int answer(ChaosQuestion question) {
    set_log_level(LogLevel::off);  // the faults make nodes log errors
    question.run.without = {question.without.begin(), question.without.end()};
    const std::size_t faults = chaos::faults_of(question.run).size();
    for (const std::size_t one : question.run.without) {
        if (one < faults) continue;
        fmt::print(stderr, "nexar: there is no fault {}; seed {} has the faults 0 to {}\n", one,
                   question.run.seed, faults - 1);
        return kExitUsage;
    }
    if (question.trace) {
        question.run.say = [](const std::string& line) { print(line + "\n"); };
    }
    const bool kept =
        question.seeds == 1 ? run_one(question.run) : run_many(question.run, question.seeds);
    return kept ? kExitOk : kExitFailure;
}

}  // namespace

void add_chaos_command(CLI::App& sim, Invocation& invocation) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    const auto question = std::make_shared<ChaosQuestion>();
    CLI::App* const command =
        sim.add_subcommand("chaos", "Simulates a cluster under faults, and checks its promises");
    command->add_option("--seed", question->run.seed, "All random choices follow from this number")
        ->type_name("NUMBER")
        ->capture_default_str()
        ->check(whole_number(0, kMost));
    command
        ->add_option("--nodes", question->run.nodes,
                     "Processes that form the cluster, a whole number from 2 to 16; default: the "
                     "seed chooses it")
        ->type_name("N")
        ->check(whole_number(2, 16));
    command
        ->add_option("--seeds", question->seeds,
                     "Runs this many seeds, from --seed on, and prints those that break a rule")
        ->type_name("COUNT")
        ->capture_default_str()
        ->check(whole_number(1, 1U << 30U));
    command
        ->add_option("--topology", question->run.topology,
                     "The setting topology of the cluster: full, k_regular:K or hypercube")
        ->type_name("TOPOLOGY")
        ->capture_default_str()
        ->check(known_topology());
    CLI::Option* const without =
        command
            ->add_option("--without", question->without,
                         "Leaves out these faults, by their numbers in the list: 3,7")
            ->type_name("LIST")
            ->delimiter(',')
            ->check(whole_number(0, 1000));
    command->get_option("--seeds")->excludes(without);
    command->add_flag("--trace", question->trace, "Prints what happens");
    set_help(*command, "[OPTIONS]",
             "Runs real nodes and a real seed in this process, on virtual time and a simulated "
             "network: QUIC, joins, failure detection, views, shrinking, growing and collectives "
             "are the code that programs use. Every process runs checked sums, messages and "
             "agreements. For 60 virtual seconds, faults that follow from the seed kill, stop, "
             "slow down and cut off processes, lose packets, and restart the seed; others join and "
             "leave. Then the cluster must become whole again.\n"
             "Prints the faults and the outcome. If a promise was broken, also the smallest set of "
             "faults that was found to break it. The same options give the same run, with the same "
             "trace.\n"
             "\n"
             "Examples:\n"
             "  nexar sim chaos --seed 7 --nodes 16\n"
             "  nexar sim chaos --seed 1 --seeds 100\n"
             "  nexar sim chaos --seed 7 --nodes 16 --without 3,7 --trace\n"
             "\n"
             "The exit code is 0 if all promises were kept, and 1 if not.");
    command->callback([question, &invocation] { invocation.exit_code = answer(*question); });
}

}  // namespace nexar
