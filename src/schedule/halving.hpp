#pragma once

#include <cstdint>

#include "schedule/builder.hpp"
#include "schedule/chunks.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule {

/// A part of a vector in memory: element e of the vector is element e - base of `slice`.
struct Window {
    Slice slice;
    std::uint64_t base = 0;

    Slice at(const Chunks& blocks, const Span& span) const {
        Slice found = chunk_range(slice, blocks, span.begin, span.end);
        found.offset -= base;
        return found;
    }
};

/// Halves the vector along the canonical tree (fold_tree.hpp). In round k a group exchanges with
/// its partner at distance 2^k: each sends one half of the blocks that it holds and folds the other
/// half.
///
///     groups 4, blocks held    0: 0123 -> 01.. -> 0...
///                              1: 0123 -> ..23 -> ..2.     after the last round group g holds
///                              2: 0123 -> 01.. -> .1..     block g with its bits reversed
///                              3: 0123 -> ..23 -> ...3
///
/// The nearest partner comes first, which keeps the order of ranks; the farthest first would give
/// group g block g. Only the leaders of groups take part; the second rank of a pair first sends its
/// whole vector to its leader.
class Halving {
public:
    Halving(std::uint32_t world, std::uint32_t rank) noexcept
        : tree_(world), rank_(rank), group_(tree_.group_of(rank)) {}

    const FoldTree& tree() const noexcept { return tree_; }
    std::uint32_t rank() const noexcept { return rank_; }
    bool is_leader() const noexcept { return tree_.leader(group_) == rank_; }
    std::uint32_t partner(std::uint32_t round) const noexcept {
        return tree_.leader(group_ ^ (1U << round));
    }

    /// The blocks that this group holds after this many rounds.
    Span held(std::uint32_t rounds) const noexcept;

    /// The one block that this group holds at the end, and the group that holds a given block.
    std::uint32_t block() const noexcept { return reversed(group_); }
    std::uint32_t holder(std::uint32_t block) const noexcept { return reversed(block); }

    /// Reserves memory in which a leader folds if it has none: for the blocks that it holds after
    /// the first round, or for all blocks if it leads a pair.
    Window scratch(Builder& builder, const Chunks& blocks) const;

    /// Adds the fold of the pair, then all rounds. `in` is this rank's vector. Leaders fold into
    /// `window`, which may be `in` itself; other ranks do not use it.
    void fold(Builder& builder, const Chunks& blocks, const Slice& in, const Window& window) const;

private:
    std::uint32_t reversed(std::uint32_t x) const noexcept;

    FoldTree tree_;
    std::uint32_t rank_;
    std::uint32_t group_;
};

/// Folds all ranks' `in` by halving; afterwards the holders send the chunks to their owners, and
/// each rank gets its chunk in `result`. Leaders fold in `window`, which may be `in` itself and may
/// contain `result`. For worlds of two or more ranks.
struct HalvingReduceScatter {
    Halving halving;
    const Chunks& chunks;
    Slice in;
    Window window;
    Slice result;

    void add_to(Builder& builder) const;
};

/// The blocks of the groups: each joins the chunks of its ranks.
Chunks blocks_of(const FoldTree& tree, const Chunks& chunks);

}  // namespace nexar::schedule
