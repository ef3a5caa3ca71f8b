#pragma once

#include <array>
#include <cstdint>
#include <nexar/result.hpp>
#include <set>
#include <utility>
#include <vector>

#include "schedule/check/expressions.hpp"
#include "schedule/check/graph.hpp"
#include "schedule/range_map.hpp"

namespace nexar::schedule {

/// Runs the schedules on symbols instead of numbers, in one order of events; without hazards every
/// other order gives the same result. An element holds an expression over ranks and the index that
/// the element has in the inputs of those ranks. Consecutive elements with the same expression and
/// rising indices are one entry, so the running time does not depend on counts.
class Values {
public:
    Values(const Run& run, const EventGraph& graph);

    /// Fails if a step reads an element that no step wrote, or folds elements with different
    /// indices.
    Result<void> execute();

    /// Checks that the outputs hold what the operation guarantees.
    Result<void> check_results();

private:
    struct Value {
        Expressions::Id expression = 0;
        std::uint64_t shift = 0;  // index = position + shift, modulo 2^64
    };
    /// `count` elements with the same expression, the first one at `index`.
    struct Stretch {
        std::uint64_t count = 0;
        Expressions::Id expression = 0;
        std::uint64_t index = 0;
    };
    using Stretches = std::vector<Stretch>;
    using Buffers = std::array<RangeMap<Value>, 3>;

    /// What `where` must hold: element j is the fold of element index + j of ranks `first` to
    /// `last`.
    struct Wanted {
        Slice where;
        std::uint64_t index = 0;
        std::uint32_t first = 0;
        std::uint32_t last = 0;
    };

    Result<Stretches> read(std::uint32_t rank, const Slice& slice) const;
    void write(std::uint32_t rank, const Slice& slice, const Stretches& stretches);
    Result<void> act(std::uint32_t rank, std::uint32_t step);
    Result<Stretches> folded(std::uint32_t rank, std::uint32_t step, const Stretches& incoming);

    std::vector<Wanted> wanted(std::uint32_t rank) const;
    Result<void> expect(std::uint32_t rank, const Wanted& wanted);
    Result<void> expect_fold(std::uint32_t rank, const Wanted& wanted, Expressions::Id got);
    Result<void> expect_as_rank_0(std::uint32_t rank);

    const Run& run_;
    const EventGraph& graph_;
    Expressions expressions_;
    Expressions::Id canonical_;
    std::vector<Buffers> buffers_;                   // per rank
    std::vector<std::vector<Stretches>> in_flight_;  // per rank and send: what it carries
    std::set<std::pair<Expressions::Id, std::uint32_t>>
        right_;  // folds found correct, with their last rank
};

/// Checks that a rank that leaves the barrier has heard from every rank, directly or indirectly.
Result<void> check_barrier(const Run& run, const EventGraph& graph);

}  // namespace nexar::schedule
