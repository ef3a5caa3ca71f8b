// nexar explain: which algorithm nexar chooses for a collective, why, and what each rank does.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "base/try.hpp"
#include "collective.hpp"
#include "command.hpp"
#include "engine/memory_layout.hpp"
#include "engine/memory_plan.hpp"
#include "help.hpp"
#include "schedule/picture/svg.hpp"
#include "schedule/picture/text.hpp"
#include "schedule/picture/trace.hpp"
#include "text_table.hpp"

namespace nexar {

namespace {

using schedule::Choice;

// Larger schedules take long to build, and nobody reads them.
constexpr std::uint32_t kMostShown = 256;

struct ExplainOptions {
    CollectiveQuestion question{};
    bool alternatives = false;
    std::string memory = "0";
    std::string buffers = "private";
    std::string picture{};  // file; empty: none
};

std::string segment_of(const AskedCollective& asked, const Choice& choice) {
    return choice.segment == 0 ? "-" : format_size(choice.segment * asked.workload.element_bytes);
}

std::string medium_of(const Choice& choice) {
    return choice.algorithm->traits.medium == schedule::Medium::memory ? "memory" : "messages";
}

/// The memory that ranks share if each has a segment of this size; fails if that is too small.
Result<schedule::Memory> shared_memory(std::string_view size) {
    NEXAR_TRY_VALUE(bytes, parse_size(size));
    if (bytes == 0) return schedule::Memory{};
    const auto layout = engine::MemoryLayout::of(static_cast<std::size_t>(bytes));
    if (!layout) {
        return not_allowed(
            "size of shared memory", size,
            fmt::format("0, or {} and more", format_size(engine::MemoryLayout::kLeastBytes)));
    }
    return schedule::Memory{.slot_bytes = layout->slot_bytes, .buffer_bytes = layout->buffer_bytes};
}

/// The path that the payload of an algorithm in memory takes.
std::string path_of(const AskedCollective& asked, const Choice& choice, bool shared) {
    schedule::Request request;
    request.operation = asked.workload.operation;
    request.world = asked.workload.world;
    request.root = asked.root;
    request.segment = choice.segment;
    request.chunks = schedule::Chunks::even(asked.workload.count, asked.workload.world);
    request.receives = request.chunks;
    // A rank whose payload others read.
    const bool from_root = request.operation == schedule::Collective::broadcast ||
                           request.operation == schedule::Collective::scatter;
    if (from_root || schedule::rooted(request.operation)) {
        request.rank = (asked.root + (from_root ? 0 : 1)) % request.world;
    }
    const auto plan_of = [&](bool in_place) {
        request.in_place = in_place;
        return engine::MemoryPlan(choice.algorithm->build(request), *choice.algorithm, request,
                                  asked.workload.element_bytes);
    };
    const engine::MemoryPlan plan = plan_of(false);
    if (asked.workload.count == 0) return "there is no payload\n";
    if (plan.in_slot()) {
        return "a rank copies its payload into its slot, and the others read it there, whatever "
               "memory it comes from\n";
    }
    if (!shared || !plan.shown(0)) {
        return fmt::format(
            "a rank copies its payload into its segment in {} rounds, and the others read it "
            "there\n",
            plan.rounds());
    }
    return fmt::format(
        "the other ranks read the payload in place, in the shared buffer of its "
        "rank{}\n",
        plan_of(true).shown(0) ? "" : "; in-place calls copy it first");
}

std::string reason(const AskedCollective& asked, const std::vector<Choice>& all) {
    if (!asked.profile.forced_for(asked.workload.operation, asked.workload.bytes()).empty())
        return "chosen because it is forced";
    if (all.size() == 1) return "chosen because it is the only algorithm that can run this";
    if (all[1].seconds < all[0].seconds) {
        return fmt::format("chosen because ranks that share memory prefer it to links; {} takes {}",
                           all[1].algorithm->name, as_time(all[1].seconds));
    }
    return fmt::format(
        "chosen because it is predicted to be the fastest of {}; the next one, {}, takes "
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
    return fmt::format(
        "each rank has at most {} steps, sends at most {} and needs at most {} of scratch "
        "memory\n",
        steps, format_size(bytes), format_size(scratch));
}

std::string table_of(const AskedCollective& asked, const std::vector<Choice>& all) {
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "medium", "predicted", "segment", "any operator", "reproducible"}};
    for (const Choice& choice : all) {
        const schedule::Traits traits = schedule::traits_for(
            *choice.algorithm, asked.profile.links.levels(asked.workload.world));
        rows.push_back({std::string(choice.algorithm->name), medium_of(choice),
                        as_time(choice.seconds), segment_of(asked, choice),
                        traits.keeps_order ? "yes" : "-", traits.canonical ? "yes" : "-"});
    }
    return aligned(rows);
}

Result<void> write_picture(const std::string& path, const AskedCollective& asked,
                           const Choice& chosen) {
    if (asked.workload.world > schedule::kMostTraced) {
        return Error(Errc::limit_exceeded,
                     fmt::format("--picture draws at most {} ranks, but the world has {}; choose a "
                                 "smaller --world",
                                 schedule::kMostTraced, asked.workload.world));
    }
    std::ofstream file(path, std::ios::binary);
    file << schedule::svg_picture(*chosen.algorithm, asked.workload.world, asked.root,
                                  asked.profile.links);
    file.flush();
    if (file) return {};
    return Error(Errc::invalid_argument,
                 fmt::format("cannot write the picture to {}; check that its directory exists and "
                             "is writable",
                             path));
}

Result<std::string> explanation(const ExplainOptions& options, const Invocation& invocation) {
    NEXAR_TRY_VALUE(asked, understood(options.question, invocation.flags));
    NEXAR_TRY_VALUE(memory, shared_memory(options.memory));
    asked.profile.memory.slot_bytes = memory.slot_bytes;
    asked.profile.memory.buffer_bytes = memory.buffer_bytes;
    NEXAR_TRY_VALUE(chosen, schedule::choose(asked.workload, asked.profile));
    const std::vector<Choice> all = schedule::ranked(asked.workload, asked.profile);
    const schedule::Levels levels = asked.profile.links.levels(asked.workload.world);
    std::string text = fmt::format(
        "{} of {} over {} ranks{}: {}{}{}, {}\n{}\n", schedule::name(asked.workload.operation),
        format_size(asked.workload.bytes()), asked.workload.world,
        levels.two() ? fmt::format(" on {} hosts", levels.hosts) : "", chosen.algorithm->name,
        chosen.algorithm->traits.medium == schedule::Medium::memory ? " in shared memory" : "",
        chosen.segment == 0 ? "" : " in segments of " + segment_of(asked, chosen),
        as_time(chosen.seconds), reason(asked, all));
    if (options.buffers != "private" && options.buffers != "shared") {
        return not_allowed("kind of buffers", options.buffers, "private, shared");
    }
    if (chosen.algorithm->traits.medium == schedule::Medium::memory) {
        text += path_of(asked, chosen, options.buffers == "shared");
    }
    if (asked.workload.world <= kMostShown) {
        NEXAR_TRY_VALUE(ranks, all_schedules(asked, chosen));
        text += work_of_ranks(asked, ranks);
        text += schedule::text_picture(ranks, asked.workload.element_bytes);
    }
    if (options.alternatives) text += "\n" + table_of(asked, all);
    if (!options.picture.empty()) NEXAR_TRY(write_picture(options.picture, asked, chosen));
    return text;
}

}  // namespace

void add_explain_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command = app.add_subcommand(
        "explain", "Shows which algorithm a collective uses, why, and what it sends");
    auto options = std::make_shared<ExplainOptions>();
    add_collective_options(*command, options->question);
    command->add_flag("--all", options->alternatives,
                      "Lists every algorithm that can run the collective, fastest first");
    command
        ->add_option("--memory", options->memory,
                     "Memory that each rank shares with all others, such as 8MiB; 0: none")
        ->type_name("SIZE")
        ->capture_default_str();
    command
        ->add_option("--buffers", options->buffers,
                     "With --memory: whether inputs and outputs are private memory or shared "
                     "buffers")
        ->type_name("KIND")
        ->capture_default_str();
    command
        ->add_option("--picture", options->picture,
                     "Draws the messages as an SVG image into this file, for up to 8 ranks")
        ->type_name("FILE");
    set_help(*command, "OPERATION [OPTIONS]",
             "The choice depends on the operation, the size, the world and the costs of the "
             "fabric, which are equal on all ranks, so all ranks make the same choice.\n"
             "Costs that no option gives come from the settings (see nexar config; nexar tune "
             "measures them). "
             "With --latency, each message also keeps its sender and its receiver busy for a "
             "quarter of that time.\n"
             "\n"
             "Examples:\n"
             "  nexar explain all_reduce --bytes 64MiB --world 8\n"
             "  nexar explain broadcast --bytes 1KiB --world 100 --all\n"
             "  nexar explain all_reduce --world 4 --algorithm ring --picture ring.svg\n"
             "  nexar explain all_reduce --hosts 2x4 --all\n"
             "  nexar explain all_reduce --world 1024 --latency 2us --bandwidth 400Gbps\n"
             "  nexar explain all_reduce --world 8 --bytes 1MiB --memory 8MiB --buffers shared");
    command->callback(
        [options, &invocation] { invocation.exit_code = say(explanation(*options, invocation)); });
}

}  // namespace nexar
