// Checks the results of operations: the second half of Values, and barriers.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/try.hpp"
#include "schedule/check/values.hpp"

namespace nexar::schedule {

Result<void> Values::check_results() {
    for (std::uint32_t rank = 0; rank < run_.world(); ++rank) {
        for (const Wanted& wanted : wanted(rank)) NEXAR_TRY(expect(rank, wanted));
        if (run_.algorithm.operation == Collective::all_reduce) NEXAR_TRY(expect_as_rank_0(rank));
    }
    return {};
}

std::vector<Values::Wanted> Values::wanted(std::uint32_t rank) const {
    const Request& request = run_.requests[rank];
    const Slice result = result_of(request);
    const std::uint32_t last = run_.world() - 1;
    std::vector<Wanted> all;
    switch (request.operation) {
        case Collective::all_reduce:
        case Collective::reduce:
            return {{result, 0, 0, last}};
        case Collective::reduce_scatter:
            return {{result, request.chunks.offset(rank), 0, last}};
        case Collective::scan:
            return {{result, 0, 0, rank}};
        case Collective::exclusive_scan:
            if (rank == 0) return {};
            return {{result, 0, 0, rank - 1}};
        case Collective::broadcast:
            return {{result, 0, request.root, request.root}};
        case Collective::scatter:
            // In place the root keeps its whole vector.
            if (in_place_here(request)) return {{output_of(request), 0, rank, rank}};
            return {{result, run_.requests[request.root].chunks.offset(rank), request.root,
                     request.root}};
        case Collective::all_gather:
        case Collective::gather:
            if (result.count == 0) return {};
            for (std::uint32_t i = 0; i <= last; ++i)
                all.push_back(
                    {part(result, request.chunks.offset(i), request.chunks.count(i)), 0, i, i});
            return all;
        case Collective::all_to_all:
            for (std::uint32_t i = 0; i <= last; ++i)
                all.push_back({part(result, request.receives.offset(i), request.receives.count(i)),
                               run_.requests[i].chunks.offset(rank), i, i});
            return all;
        case Collective::barrier:
            return {};
    }
    return {};
}

Result<void> Values::expect(std::uint32_t rank, const Wanted& wanted) {
    NEXAR_TRY_VALUE(stretches, read(rank, wanted.where));
    std::uint64_t index = wanted.index;
    for (const Stretch& stretch : stretches) {
        if (stretch.index != index)
            return run_.fault(rank, fmt::format("{} contains element {} where element {} belongs",
                                                to_text(wanted.where), stretch.index, index));
        NEXAR_TRY(expect_fold(rank, wanted, stretch.expression));
        index += stretch.count;
    }
    return {};
}

Result<void> Values::expect_fold(std::uint32_t rank, const Wanted& wanted, Expressions::Id got) {
    const Traits traits = run_.traits();
    if (traits.canonical && wanted.first != wanted.last && got != canonical_)
        return run_.fault(rank, "the fold does not follow the canonical tree");
    if (right_.contains({got, wanted.last})) return {};
    auto leaves = expressions_.leaves(got);
    if (!traits.keeps_order) std::sort(leaves.begin(), leaves.end());
    std::vector<std::uint32_t> ranks(wanted.last - wanted.first + 1);
    std::iota(ranks.begin(), ranks.end(), wanted.first);
    if (leaves != ranks)
        return run_.fault(
            rank,
            fmt::format("{} contains the fold of ranks {} where that of ranks {} to {} "
                        "belongs",
                        to_text(wanted.where), fmt::join(leaves, " "), wanted.first, wanted.last));
    if (wanted.first == 0) right_.insert({got, wanted.last});
    return {};
}

/// Compares up to the order of operands, which does not affect the bits of commutative operators.
Result<void> Values::expect_as_rank_0(std::uint32_t rank) {
    NEXAR_TRY_VALUE(mine, read(rank, result_of(run_.requests[rank])));
    NEXAR_TRY_VALUE(first, read(0, result_of(run_.requests[0])));
    std::size_t k = 0;
    std::uint64_t end_of_first = first.empty() ? 0 : first[0].count;
    std::uint64_t position = 0;
    for (const Stretch& stretch : mine) {
        const std::uint64_t end = position + stretch.count;
        while (position < end) {
            if (expressions_.shape(stretch.expression) != expressions_.shape(first[k].expression))
                return run_.fault(
                    rank, fmt::format("element {} was folded along another tree than at rank 0",
                                      position));
            position = std::min(end, end_of_first);
            if (position == end_of_first && k + 1 < first.size()) end_of_first += first[++k].count;
        }
    }
    return {};
}

Result<void> check_barrier(const Run& run, const EventGraph& graph) {
    // Only received messages count: a small send may end before its receiver has begun.
    using Heard = std::vector<bool>;
    std::vector<std::vector<Heard>> heard(run.world());
    std::vector<Heard> at_exit(run.world(), Heard(run.world(), false));
    for (std::uint32_t rank = 0; rank < run.world(); ++rank)
        heard[rank].resize(run.schedules[rank].steps.size());
    const auto add = [](Heard& to, const Heard& from) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] || from[i];
    };
    for (const auto event : graph.order()) {
        const std::uint32_t rank = graph.rank_of(event);
        const std::uint32_t step = graph.step_of(event);
        Heard& own = heard[rank][step];
        if (graph.is_start(event)) {
            own.assign(run.world(), false);
            own[rank] = true;
            for (const Dependency& d : run.schedules[rank].dependencies_of(step))
                add(own, heard[rank][d.step]);
        } else if (graph.is_finished(event)) {
            const Step& s = run.step(rank, step);
            if (receives(s.kind)) add(own, heard[s.peer][graph.other_end(rank, step)]);
            add(at_exit[rank], own);
        }
    }
    for (std::uint32_t rank = 0; run.world() > 1 && rank < run.world(); ++rank) {
        const auto missing = std::find(at_exit[rank].begin(), at_exit[rank].end(), false);
        if (missing != at_exit[rank].end())
            return run.fault(
                rank, fmt::format("the rank leaves the barrier without having heard from rank {}",
                                  missing - at_exit[rank].begin()));
    }
    return {};
}

}  // namespace nexar::schedule
