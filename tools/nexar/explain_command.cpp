// nexar explain: which algorithm a collective takes, why, and what it does.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "help.hpp"
#include "schedule/picture.hpp"
#include "text_table.hpp"

namespace nexar {

namespace {

using schedule::Choice;

// Schedules of larger worlds take long to draw, and nobody reads them.
constexpr std::uint32_t kMostDrawn = 256;

std::string segment_of(const AskedCollective& asked, const Choice& choice) {
    return choice.segment == 0 ? "-" : format_size(choice.segment * asked.workload.element_bytes);
}

std::string reason(const AskedCollective& asked, const std::vector<Choice>& all) {
    if (!asked.profile.forced_for(asked.workload.operation, asked.workload.bytes()).empty())
        return "because it is forced";
    if (all.size() == 1) return "because no other may be taken";
    return fmt::format(
        "because it is predicted to be the fastest of {}; the next one, {}, takes "
        "{:.2f} times as long",
        all.size(), all[1].algorithm->name, all[1].seconds / all[0].seconds);
}

std::string work_of_ranks(const AskedCollective& asked,
                          const std::vector<schedule::Schedule>& ranks) {
    std::uint64_t steps = 0;
    std::uint64_t bytes = 0;
    std::uint64_t scratch = 0;
    for (const schedule::Schedule& one : ranks) {
        std::uint64_t sent = 0;
        for (const schedule::Step& step : one.steps)
            if (step.kind == schedule::Kind::send) sent += step.count();
        steps = std::max<std::uint64_t>(steps, one.steps.size());
        bytes = std::max(bytes, sent * asked.workload.element_bytes);
        scratch = std::max(scratch, one.scratch * asked.workload.element_bytes);
    }
    return fmt::format("a rank has at most {} steps, sends {} and needs {} of scratch memory\n",
                       steps, format_size(bytes), format_size(scratch));
}

std::string table_of(const AskedCollective& asked, const std::vector<Choice>& all) {
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "predicted", "segment", "keeps order", "repeats in runs"}};
    for (const Choice& choice : all) {
        const schedule::Traits& traits = choice.algorithm->traits;
        rows.push_back({std::string(choice.algorithm->name), as_time(choice.seconds),
                        segment_of(asked, choice), traits.keeps_order ? "yes" : "-",
                        traits.canonical ? "yes" : "-"});
    }
    return aligned(rows);
}

Result<std::string> explanation(const CollectiveQuestion& question, bool alternatives,
                                const Invocation& invocation) {
    const auto asked = understood(question, invocation.flags);
    if (!asked) return asked.error();
    const auto chosen = schedule::choose(asked->workload, asked->profile);
    if (!chosen) return chosen.error();
    const std::vector<Choice> all = schedule::ranked(asked->workload, asked->profile);
    std::string text = fmt::format(
        "{} of {} over {} ranks: {}{}, {}\n{}\n", schedule::name(asked->workload.operation),
        format_size(asked->workload.bytes()), asked->workload.world, chosen->algorithm->name,
        chosen->segment == 0 ? "" : " in segments of " + segment_of(*asked, *chosen),
        as_time(chosen->seconds), reason(*asked, all));
    if (asked->workload.world <= kMostDrawn) {
        const auto ranks = all_schedules(*asked, *chosen);
        if (!ranks) return ranks.error();
        text += work_of_ranks(*asked, *ranks);
        text += schedule::picture(*ranks, asked->workload.element_bytes);
    }
    if (alternatives) text += "\n" + table_of(*asked, all);
    return text;
}

}  // namespace

void add_explain_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command =
        app.add_subcommand("explain", "Says which algorithm a collective takes, and why");
    auto question = std::make_shared<CollectiveQuestion>();
    auto alternatives = std::make_shared<bool>(false);
    add_collective_options(*command, *question);
    command->add_flag("--all", *alternatives, "Shows all that may be taken");
    set_help(*command, "OPERATION [OPTIONS]",
             "The choice depends on the operation, the size and the costs of the fabric, so that "
             "all ranks make the same one.\n"
             "What is not said is as it is set (nexar config; nexar tune measures the rates). With "
             "--latency, each message also keeps its sender and its receiver busy for a quarter of "
             "it.\n"
             "\n"
             "Examples:\n"
             "  nexar explain all_reduce --bytes 64MiB --world 8\n"
             "  nexar explain broadcast --bytes 1KiB --world 100 --all\n"
             "  nexar explain all_reduce --world 1024 --latency 2us --bandwidth 400Gbps");
    command->callback([question, alternatives, &invocation] {
        invocation.exit_code = say(explanation(*question, *alternatives, invocation));
    });
}

}  // namespace nexar
