#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "schedule/fold_tree.hpp"

namespace nexar::schedule {

/// What an element is made of: a leaf is one rank's contribution, a node the fold of two
/// expressions in their order. Equal expressions have equal numbers, so comparing two is comparing
/// their numbers; `shape` is a second numbering that forgets the order of operands.
class Expressions {
public:
    using Id = std::uint32_t;

    Id leaf(std::uint32_t rank);
    Id fold(Id left, Id right);
    std::uint32_t shape(Id id) const { return nodes_[id].shape; }

    /// The contributing ranks from left to right.
    std::vector<std::uint32_t> leaves(Id id) const;

    /// The canonical tree of fold_tree.hpp over all ranks.
    Id canonical(std::uint32_t world);

private:
    static constexpr Id kNone = std::numeric_limits<Id>::max();
    struct Node {
        Id left = kNone;   // kNone: a leaf,
        Id right = kNone;  // and this its rank
        std::uint32_t shape = 0;
    };

    static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
        return std::uint64_t{a} << 32U | b;
    }
    std::uint32_t number_of_shape(std::uint64_t key);

    std::vector<Node> nodes_;
    std::unordered_map<std::uint64_t, Id> ids_;                // by left and right
    std::unordered_map<std::uint64_t, std::uint32_t> shapes_;  // by the smaller and greater shape
};

}  // namespace nexar::schedule
