#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "schedule/fold_tree.hpp"

namespace nexar::schedule {

/// How elements were computed: a leaf is the contribution of one rank, a node the fold of two
/// expressions in their order. Equal expressions have equal ids, so comparing ids compares
/// expressions; `shape` is a second numbering that ignores the order of operands.
class Expressions {
public:
    using Id = std::uint32_t;

    Id leaf(std::uint32_t rank);
    Id fold(Id left, Id right);
    std::uint32_t shape(Id id) const { return nodes_[id].shape; }

    /// The contributing ranks, from left to right.
    std::vector<std::uint32_t> leaves(Id id) const;

    /// The fold of all ranks along the canonical tree (fold_tree.hpp).
    Id canonical(std::uint32_t world);

private:
    static constexpr Id kNone = std::numeric_limits<Id>::max();
    struct Node {
        Id left = kNone;   // kNone: a leaf
        Id right = kNone;  // of a leaf: its rank
        std::uint32_t shape = 0;
    };

    static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
        return std::uint64_t{a} << 32U | b;
    }
    std::uint32_t number_of_shape(std::uint64_t key);

    std::vector<Node> nodes_;
    std::unordered_map<std::uint64_t, Id> ids_;  // by left and right
    std::unordered_map<std::uint64_t, std::uint32_t>
        shapes_;  // by the smaller and the greater shape
};

}  // namespace nexar::schedule
