#include "schedule/spanning_tree.hpp"

#include <algorithm>
#include <functional>

#include "base/assert.hpp"

namespace nexar::schedule {

SpanningTree::SpanningTree(std::span<const std::uint32_t> parents)
    : parents_(parents.begin(), parents.end()), sizes_(parents.size(), 1) {
    NEXAR_ASSERT(!parents_.empty());
    list_children();
    const auto itself = [&](std::uint32_t rank) { return parents_[rank] == rank; };
    ranks_.reserve(parents_.size());
    for (std::uint32_t rank = 0; rank < parents_.size(); ++rank) {
        if (itself(rank)) ranks_.push_back(rank);
    }
    NEXAR_ASSERT(ranks_.size() == 1, "a tree has one root");
    // Breadth first, so that parents precede their children.
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        const auto own = children(ranks_[i]);
        ranks_.insert(ranks_.end(), own.begin(), own.end());
    }
    NEXAR_ASSERT(ranks_.size() == parents_.size(), "every rank is below the root");
    for (std::size_t i = ranks_.size() - 1; i > 0; --i) {
        sizes_[parents_[ranks_[i]]] += sizes_[ranks_[i]];
    }
    order_children();
}

void SpanningTree::list_children() {
    const auto world = static_cast<std::uint32_t>(parents_.size());
    begins_.assign(std::size_t{world} + 1, 0);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        NEXAR_ASSERT(parents_[rank] < world);
        if (parents_[rank] != rank) ++begins_[parents_[rank] + 1];
    }
    for (std::uint32_t rank = 0; rank < world; ++rank) begins_[rank + 1] += begins_[rank];
    children_.resize(begins_[world]);
    std::vector<std::uint32_t> ends = begins_;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        if (parents_[rank] != rank) children_[ends[parents_[rank]]++] = rank;
    }
}

/// Sorts the children of every rank, and numbers the places.
void SpanningTree::order_children() {
    places_.assign(parents_.size(), 0);
    for (const std::uint32_t rank : ranks_) {
        const auto own =
            std::span(children_).subspan(begins_[rank], begins_[rank + 1] - begins_[rank]);
        // Equal subtrees stay in the order of ranks.
        std::ranges::sort(own, [&](std::uint32_t left, std::uint32_t right) {
            if (sizes_[left] != sizes_[right]) return sizes_[left] > sizes_[right];
            return left < right;
        });
        std::uint32_t place = places_[rank] + 1;
        for (const std::uint32_t child : own) {
            places_[child] = place;
            place += sizes_[child];
        }
    }
    for (std::uint32_t rank = 0; rank < places_.size(); ++rank) ranks_[places_[rank]] = rank;
}

TreeShape SpanningTree::shape() const {
    struct Way {
        double depth = 0;
        double turns = 0;
        double passed = 0;
    };
    std::vector<Way> ways(world());
    TreeShape shape;
    for (const std::uint32_t rank : ranks_) {
        const auto own = children(rank);
        double& most = rank == root() ? shape.root_children : shape.children;
        most = std::max(most, static_cast<double>(own.size()));
        Way way = ways[rank];
        shape.depth = std::max(shape.depth, way.depth);
        shape.total_depth += way.depth;
        shape.turns = std::max(shape.turns, way.turns);
        shape.passed = std::max(shape.passed, way.passed);
        ++way.depth;
        for (const std::uint32_t child : own) {
            way.passed += sizes_[child];
            ways[child] = way;
            ++way.turns;
        }
    }
    return shape;
}

}  // namespace nexar::schedule
