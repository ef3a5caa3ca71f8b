// nexar sim: how long a collective takes on a simulated fabric. Its own commands are in
// chaos_command.cpp and topologies_command.cpp.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/quantity.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "help.hpp"
#include "schedule/timing.hpp"

namespace nexar {

namespace {

Result<std::string> simulated(const CollectiveQuestion& question, const Invocation& invocation) {
    const auto asked = understood(question, invocation.flags);
    if (!asked) return asked.error();
    const auto chosen = schedule::choose(asked->workload, asked->profile);
    if (!chosen) return chosen.error();
    const auto ranks = all_schedules(*asked, *chosen);
    if (!ranks) return ranks.error();
    const schedule::Fabric fabric{.rates = asked->profile.slowest_rates(),
                                  .host_rates = asked->profile.host_rates,
                                  .links = asked->profile.links};
    const auto timing = schedule::run_on_clock(*ranks, asked->workload.element_bytes, fabric);
    if (!timing) return timing.error();
    return fmt::format(
        "operation         {}\n"
        "world             {} ranks\n"
        "size              {}\n"
        "algorithm         {}\n"
        "time              {}\n"
        "predicted         {}\n"
        "bytes per rank    at most {}, {} in total\n"
        "messages          at most {} per rank\n"
        "connections       at most {} per rank\n",
        schedule::name(asked->workload.operation), asked->workload.world,
        format_size(asked->workload.bytes()), chosen->algorithm->name, as_time(timing->seconds),
        as_time(chosen->seconds), format_size(timing->most_bytes_sent),
        format_size(timing->bytes_sent), timing->most_messages, timing->most_connections);
}

}  // namespace

void add_sim_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command = app.add_subcommand(
        "sim", "Simulates a collective or a cluster under faults, and compares topologies");
    auto question = std::make_shared<CollectiveQuestion>();
    add_collective_options(*command, *question);
    // CLI11 would also require it of the commands below.
    command->get_option("operation")->required(false);
    add_chaos_command(*command, invocation);
    add_topologies_command(*command, invocation);
    set_help(*command, "OPERATION [OPTIONS]",
             "Simulates every step of every rank on a virtual clock, without data: each rank sends "
             "one message, receives one message and folds one message at a time.\n"
             "Costs that no option gives come from the settings (see nexar config; nexar tune "
             "measures them). "
             "With --latency, each message also keeps its sender and its receiver busy for a "
             "quarter of that time.\n"
             "\n"
             "Examples:\n"
             "  nexar sim all_reduce --world 4096 --bytes 64MiB --latency 10us --bandwidth "
             "100Gbps\n"
             "  nexar sim barrier --world 1000 --latency 5us\n"
             "  nexar sim topologies --world 1024\n"
             "  nexar sim chaos --seed 7 --nodes 16");
    command->callback([question, command, &invocation] {
        if (!command->get_subcommands().empty()) return;
        if (question->operation.empty()) throw CLI::RequiredError("operation");
        invocation.exit_code = say(simulated(*question, invocation));
    });
}

}  // namespace nexar
