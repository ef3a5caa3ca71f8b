#include "schedule/check/hazards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/try.hpp"
#include "schedule/range_map.hpp"

namespace nexar::schedule {

namespace {

/// Walks through the accesses of one rank in a possible order and requires that each is ordered
/// after the latest accesses that it conflicts with: a read after the last write, a write after the
/// last write and the reads since. That also orders it after all older accesses.
class RankHazards {
public:
    RankHazards(const Run& run, const EventGraph& graph, std::uint32_t rank)
        : run_(run), graph_(graph), rank_(rank) {}

    Result<void> check() {
        std::vector<std::uint32_t> steps(run_.schedules[rank_].steps.size());
        std::iota(steps.begin(), steps.end(), 0U);
        std::sort(steps.begin(), steps.end(), [&](std::uint32_t a, std::uint32_t b) {
            return graph_.position(graph_.start(rank_, a)) <
                   graph_.position(graph_.start(rank_, b));
        });
        for (const std::uint32_t i : steps) {
            const Step& step = run_.step(rank_, i);
            if (reads_from(step.kind)) NEXAR_TRY(read(i, step.from));
            if (folds(step.kind)) NEXAR_TRY(read(i, step.local));
            if (writes_into(step.kind)) NEXAR_TRY(write(i, step.into));
        }
        return {};
    }

private:
    struct Access {
        std::uint32_t step = EventGraph::kNone;
        Slice slice;
    };
    struct Cell {
        Access writer;
        std::vector<Access> readers;  // since the writer
    };

    RangeMap<Cell>& cells(const Slice& slice) {
        return cells_.at(static_cast<std::size_t>(slice.space));
    }

    Result<void> read(std::uint32_t step, const Slice& slice) {
        if (slice.space == Space::input) return {};  // never written
        for (auto& entry : cells(slice).exactly(slice.offset, slice.end())) {
            NEXAR_TRY(expect_after(entry.value.writer, step, slice));
            entry.value.readers.push_back({step, slice});
        }
        return {};
    }

    Result<void> write(std::uint32_t step, const Slice& slice) {
        for (const auto& entry : cells(slice).exactly(slice.offset, slice.end())) {
            NEXAR_TRY(expect_after(entry.value.writer, step, slice));
            for (const Access& reader : entry.value.readers)
                NEXAR_TRY(expect_after(reader, step, slice));
        }
        cells(slice).assign(slice.offset, slice.end(), {{step, slice}, {}});
        return {};
    }

    Result<void> expect_after(const Access& earlier, std::uint32_t step, const Slice& slice) {
        if (earlier.step == EventGraph::kNone || earlier.step == step) return {};
        const Step& a = run_.step(rank_, earlier.step);
        const Step& b = run_.step(rank_, step);
        const bool send = a.kind == Kind::send;
        const bool pieces_match = earlier.slice == slice && a.segment == b.segment;
        const bool whole = !pieces_match && (a.segments() > 1 || b.segments() > 1);
        const auto end =
            send ? graph_.released(rank_, earlier.step) : graph_.finished(rank_, earlier.step);
        if (graph_.ordered(end, graph_.start(rank_, step), whole)) return {};
        return run_.fault(
            rank_, fmt::format("{} may access {} before the {} of {}", run_.describe(rank_, step),
                               to_text(slice), send ? "release" : "end",
                               run_.describe(rank_, earlier.step)));
    }

    const Run& run_;
    const EventGraph& graph_;
    std::uint32_t rank_;
    std::array<RangeMap<Cell>, 3> cells_;
};

}  // namespace

Result<void> check_hazards(const Run& run, const EventGraph& graph) {
    for (std::uint32_t rank = 0; rank < run.world(); ++rank)
        NEXAR_TRY(RankHazards(run, graph, rank).check());
    return {};
}

Result<void> check_window(const Run& run, const EventGraph& graph) {
    for (std::uint32_t rank = 0; rank < run.world(); ++rank) {
        std::array<std::vector<std::uint32_t>, 2> messages;  // sends, receives
        const auto& steps = run.schedules[rank].steps;
        const std::uint32_t promised = run.algorithm.traits.window;
        const std::size_t window =
            promised == kWindowAsRequested ? run.requests[rank].window : promised;
        for (std::uint32_t i = 0; i < steps.size(); ++i) {
            if (!is_message(steps[i].kind)) continue;
            auto& same = messages.at(receives(steps[i].kind) ? 1 : 0);
            same.push_back(i);
            if (same.size() <= window) continue;
            const std::uint32_t before = same[same.size() - 1 - window];
            if (!graph.ordered(graph.finished(rank, before), graph.start(rank, i), true))
                return run.fault(
                    rank, fmt::format("{} may start before the end of {}, which exceeds "
                                      "the window of {}",
                                      run.describe(rank, i), run.describe(rank, before), window));
        }
    }
    return {};
}

}  // namespace nexar::schedule
