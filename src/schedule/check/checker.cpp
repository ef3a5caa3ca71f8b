#include "schedule/check/checker.hpp"

#include <fmt/format.h>

#include <string>

#include "base/try.hpp"
#include "schedule/check/graph.hpp"
#include "schedule/check/hazards.hpp"
#include "schedule/check/places.hpp"
#include "schedule/check/values.hpp"

namespace nexar::schedule {

std::string Run::describe(std::uint32_t rank, std::uint32_t step) const {
    return fmt::format("step {} ({}) of rank {}", step, to_text(this->step(rank, step)), rank);
}

Error Run::fault(std::uint32_t rank, const std::string& what) const {
    return {Errc::invalid_argument,
            fmt::format("{} by {}, world {}, rank {}: {}", name(algorithm.operation),
                        algorithm.name, world(), rank, what),
            {.rank = static_cast<int>(rank)}};
}

namespace {

/// Says what is wrong with a single step; empty if it is well formed.
class Form {
public:
    Form(const Run& run, std::uint32_t rank)
        : run_(run), rank_(rank), schedule_(run.schedules[rank]) {}

    std::string wrong_with(std::uint32_t i) const {
        const Step& step = schedule_.steps[i];
        if (is_message(step.kind) && (step.peer >= run_.world() || step.peer == rank_))
            return "the peer is the rank itself or not in the world";
        if (reads_from(step.kind) && !inside(step.from)) return "`from` exceeds its buffer";
        if (writes_into(step.kind) && !inside(step.into)) return "`into` exceeds its buffer";
        if (writes_into(step.kind) && step.into.count > 0 && step.into.space == Space::input)
            return "the step writes to the input";
        if (step.kind == Kind::copy || step.kind == Kind::reduce)
            if (step.from.count != step.into.count) return "the counts differ";
        if (step.kind == Kind::copy && overlap(step.from, step.into))
            return "the copy overlaps itself";
        if (step.kind == Kind::reduce && step.from != step.into && overlap(step.from, step.into))
            return "`from` overlaps a part of `into`";
        if (folds(step.kind)) {
            if (!inside(step.local)) return "`local` exceeds its buffer";
            if (step.local.count != step.into.count) return "the counts differ";
            if (step.local != step.into && overlap(step.local, step.into))
                return "`local` overlaps a part of `into`";
        }
        return wrong_with_dependencies(i);
    }

private:
    bool inside(const Slice& slice) const {
        const Request& request = run_.requests[rank_];
        std::uint64_t size = schedule_.scratch;
        if (slice.space == Space::output) size = output_of(request).count;
        if (slice.space == Space::input) {
            const Slice input = input_of(request);
            size = input.space == Space::input ? input.count : 0;
        }
        return slice.offset <= size && slice.count <= size - slice.offset;
    }

    std::string wrong_with_dependencies(std::uint32_t i) const {
        const Step& step = schedule_.steps[i];
        for (const Dependency& d : schedule_.dependencies_of(i)) {
            if (d.step >= schedule_.steps.size()) return "it waits for a step that does not exist";
            const Step& other = schedule_.steps[d.step];
            if (d.event == Milestone::released && other.kind != Kind::send)
                return "it waits for the release of a step that is not a send";
            if (d.pipelined && (other.segment != step.segment || other.count() != step.count()))
                return "it is pipelined with a step that has different segments";
        }
        return {};
    }

    const Run& run_;
    std::uint32_t rank_;
    const Schedule& schedule_;
};

Result<void> check_form(const Run& run) {
    for (std::uint32_t rank = 0; rank < run.world(); ++rank) {
        const Form form(run, rank);
        for (std::uint32_t i = 0; i < run.schedules[rank].steps.size(); ++i)
            if (const std::string wrong = form.wrong_with(i); !wrong.empty())
                return run.fault(rank, fmt::format("{}: {}", run.describe(rank, i), wrong));
    }
    return {};
}

}  // namespace

Result<void> check(const Algorithm& algorithm, std::span<const Request> requests,
                   std::span<const Schedule> schedules) {
    const Run run{algorithm, requests, schedules};
    if (requests.size() != schedules.size())
        return run.fault(0, "the numbers of requests and schedules differ");
    NEXAR_TRY(check_form(run));
    EventGraph graph(run);
    NEXAR_TRY(graph.match());
    NEXAR_TRY(graph.sort());
    NEXAR_TRY(check_hazards(run, graph));
    if (algorithm.traits.medium == Medium::memory) NEXAR_TRY(check_places(run, graph));
    if (algorithm.traits.window != 0) NEXAR_TRY(check_window(run, graph));
    if (algorithm.operation == Collective::barrier) return check_barrier(run, graph);
    Values values(run, graph);
    NEXAR_TRY(values.execute());
    return values.check_results();
}

}  // namespace nexar::schedule
