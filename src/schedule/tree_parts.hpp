#pragma once

#include <cstdint>
#include <optional>

#include "schedule/builder.hpp"

namespace nexar::schedule {

/// Folds all ranks' `in` towards `root` along the canonical tree. Where two subtrees join, the
/// result stays on the side of the root, so every root uses the same tree without an extra hop:
///
///     world 4, root 0     1 -> 0, 3 -> 2, then 2 -> 0
///     world 4, root 3     1 -> 0, 2 -> 3, then 0 -> 3
///
/// A rank folds into `into`, or into scratch if that is not given; the root must give it and finds
/// the result there. Steps: ceil(log2(world)). Each rank except the root sends its vector once.
struct FoldToRoot {
    std::uint32_t world = 1;
    std::uint32_t rank = 0;
    std::uint32_t root = 0;
    Slice in;
    std::optional<Slice> into;

    void add_to(Builder& builder) const;
};

/// All-reduce by recursive doubling, see all_reduce_doubling.cpp; `in` may be `out`.
void doubling_all_reduce(Builder& builder, std::uint32_t world, std::uint32_t rank, const Slice& in,
                         const Slice& out);

/// Broadcast from the root down a binomial tree. Steps: ceil(log2(world)).
void binomial_broadcast(Builder& builder, std::uint32_t world, std::uint32_t rank,
                        std::uint32_t root, const Slice& slice);

}  // namespace nexar::schedule
