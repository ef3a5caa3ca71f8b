// nexar sim topologies: what a sparse cluster saves and costs.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "help.hpp"
#include "topologies/compare.hpp"
#include "wire/limits.hpp"

namespace nexar {

namespace {

struct TopologyOptions {
    std::vector<std::uint32_t> worlds{64, 512, 4096};
    std::vector<std::string> topologies{"full", "k_regular:4", "k_regular:8", "k_regular:16",
                                        "hypercube"};
    std::vector<std::string> operations{};  // empty: all
    std::vector<std::string> sizes{"1KiB", "1MiB"};
    bool json = false;
    CollectiveQuestion costs{};
};

Result<TopologyQuestion> question_of(TopologyOptions& options, const Invocation& invocation) {
    TopologyQuestion question{.worlds = options.worlds};
    for (const std::string& text : options.topologies) {
        NEXAR_TRY_VALUE(topology, routing::Topology::parse(text));
        question.topologies.push_back(topology);
    }
    for (const std::string& name : options.operations) {
        const auto operation = operation_named(name);
        if (!operation) return not_allowed("operation", name, operation_names());
        question.operations.push_back(*operation);
    }
    if (options.operations.empty()) {
        question.operations.assign(schedule::kCollectives.begin(), schedule::kCollectives.end());
    }
    for (const std::string& text : options.sizes) {
        NEXAR_TRY_VALUE(bytes, parse_size(text));
        if (bytes == 0 || bytes % 4 != 0) {
            return not_allowed("size of a vector of 4-byte elements", text,
                               "a multiple of 4 bytes above 0, such as 1MiB");
        }
        question.sizes.push_back(bytes);
    }
    options.costs.operation = "barrier";
    NEXAR_TRY_VALUE(asked, understood(options.costs, invocation.flags));
    question.profile = std::move(asked.profile);
    return question;
}

Result<std::string> comparison(TopologyOptions& options, const Invocation& invocation) {
    NEXAR_TRY_VALUE(question, question_of(options, invocation));
    NEXAR_TRY_VALUE(all, forecasts(question));
    return options.json ? as_json(all) : as_tables(all);
}

void add_options(CLI::App& command, TopologyOptions& options) {
    command
        .add_option("--world", options.worlds,
                    "Numbers of members to compare, each a whole number from 2 to 16384")
        ->type_name("LIST")
        ->delimiter(',')
        ->check(whole_number(2, wire::kMaxViewMembers))
        ->default_str("64,512,4096");
    command
        .add_option("--topology", options.topologies,
                    "Topologies to compare: full, hypercube, or k_regular:K with an even K from 2 "
                    "to 32")
        ->type_name("LIST")
        ->delimiter(',')
        ->default_str("full,k_regular:4,k_regular:8,k_regular:16,hypercube");
    command
        .add_option("--operation", options.operations,
                    "Collectives to compare: all_reduce, broadcast, ...; default: all")
        ->type_name("LIST")
        ->delimiter(',');
    command
        .add_option("--bytes", options.sizes,
                    "Sizes of the whole vector; for all_to_all, of the vector of one member")
        ->type_name("LIST")
        ->delimiter(',')
        ->default_str("1KiB,1MiB");
    command
        .add_option("--latency", options.costs.latency,
                    "One-way latency of a connection, such as 10us")
        ->type_name("TIME");
    command
        .add_option("--bandwidth", options.costs.bandwidth,
                    "Bandwidth of a member, such as 100Gbps or 1.5GB/s")
        ->type_name("RATE");
    command
        .add_option("--reduce", options.costs.reduce, "Rate at which a member folds, such as 8GB/s")
        ->type_name("RATE");
    command.add_flag("--json", options.json, "Prints JSON instead of tables");
}

}  // namespace

void add_topologies_command(CLI::App& sim, Invocation& invocation) {
    CLI::App* const command = sim.add_subcommand(
        "topologies", "Compares topologies: connections, times of collectives, load of relays");
    const auto options = std::make_shared<TopologyOptions>();
    add_options(*command, *options);
    set_help(*command, "[OPTIONS]",
             "In a sparse topology only some pairs of members are connected, and messages of the "
             "others pass through relays. For every number of members this prints: the connections "
             "of each topology, in total and of the member with the most; the diameter, and the "
             "mean distance of two members, in hops; the time of each collective that the cost "
             "model predicts, with every member on its own host; the algorithm that nexar chooses; "
             "and how many bytes the busiest relay forwards for each byte that a member sends "
             "itself, in that algorithm, and when all members send to all others.\n"
             "Relays are those that members choose while no link is broken. With more than 64 "
             "members, the predicted times follow from the ways of 64 of them; everything else is "
             "counted. 16384 members take minutes.\n"
             "Costs that no option gives come from the settings, as for `nexar sim OPERATION`.\n"
             "\n"
             "Examples:\n"
             "  nexar sim topologies\n"
             "  nexar sim topologies --world 1024 --topology k_regular:6,k_regular:12,hypercube\n"
             "  nexar sim topologies --world 256 --operation all_reduce --bytes 64KiB,64MiB "
             "--latency 50us --bandwidth 10Gbps --json");
    command->callback(
        [options, &invocation] { invocation.exit_code = say(comparison(*options, invocation)); });
}

}  // namespace nexar
