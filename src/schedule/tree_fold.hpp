#pragma once

#include <cstdint>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/fold_tree.hpp"

namespace nexar::schedule {

/// Adds the fold of the slices of several ranks along the canonical tree: the slice of this rank,
/// and those of the others, one message from each. Intermediate results are in scratch registers;
/// in memory the executor keeps them in one block each.
class TreeFold {
public:
    /// Folds ranks 0 to `ranks` - 1. `own` is the slice of `rank`, which may be `into`.
    TreeFold(Builder& builder, std::uint32_t ranks, std::uint32_t rank, const Slice& own,
             const Slice& into)
        : builder_(builder), tree_(ranks), rank_(rank), own_(own), into_(into) {}

    void add();

private:
    struct Operand {
        bool incoming = false;
        bool is_register = false;
        std::uint32_t peer = 0;
        Slice slice{};
    };

    Operand leaf(std::uint32_t rank) const;
    Operand node(std::uint32_t level, std::uint32_t index, bool top);
    Operand join(const Operand& left, const Operand& right, bool top);
    Slice take_register();

    Builder& builder_;
    FoldTree tree_;
    std::uint32_t rank_;
    Slice own_;
    Slice into_;
    std::vector<Slice> free_;
};

}  // namespace nexar::schedule
