#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/stretch.hpp"

namespace nexar::schedule {

/// A spanning tree over the ranks of a world. Immutable.
///
/// The children of a rank are in descending order of the ranks in their subtrees, then ascending:
/// a rank that sends to them in this order serves the longest way first. Places number the ranks
/// in depth-first order, so a subtree consists of consecutive places, its own root first:
///
///     0 -+- 3 -+- 1        children of 0: 3, 2        places: 0, 3, 1, 4, 2
///        |     +- 4        children of 3: 1, 4
///        +- 2
class SpanningTree {
public:
    /// parents[rank]; the root is its own parent.
    explicit SpanningTree(std::span<const std::uint32_t> parents);

    std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(ranks_.size()); }
    std::uint32_t root() const { return ranks_.front(); }
    /// The root itself at the root.
    std::uint32_t parent(std::uint32_t rank) const { return parents_[rank]; }
    std::span<const std::uint32_t> children(std::uint32_t rank) const {
        return std::span(children_).subspan(begins_[rank], begins_[rank + 1] - begins_[rank]);
    }
    /// The number of ranks in the subtree of a rank, including itself.
    std::uint32_t size(std::uint32_t rank) const { return sizes_[rank]; }
    std::uint32_t place(std::uint32_t rank) const { return places_[rank]; }
    std::uint32_t rank_at(std::uint32_t place) const { return ranks_[place]; }

    TreeShape shape() const;

private:
    void list_children();
    void order_children();

    std::vector<std::uint32_t> parents_;   // by rank
    std::vector<std::uint32_t> begins_;    // in children_, by rank, and its end
    std::vector<std::uint32_t> children_;  // of all ranks
    std::vector<std::uint32_t> sizes_;     // by rank
    std::vector<std::uint32_t> places_;    // by rank
    std::vector<std::uint32_t> ranks_;     // by place
};

}  // namespace nexar::schedule
