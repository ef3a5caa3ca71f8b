#include "schedule/check/expressions.hpp"

#include <algorithm>

namespace nexar::schedule {

std::uint32_t Expressions::number_of_shape(std::uint64_t key) {
    return shapes_.try_emplace(key, static_cast<std::uint32_t>(shapes_.size())).first->second;
}

Expressions::Id Expressions::leaf(std::uint32_t rank) {
    const auto [found, fresh] = ids_.try_emplace(key(kNone, rank), static_cast<Id>(nodes_.size()));
    if (fresh) nodes_.push_back({kNone, rank, number_of_shape(key(kNone, rank))});
    return found->second;
}

Expressions::Id Expressions::fold(Id left, Id right) {
    const auto [found, fresh] = ids_.try_emplace(key(left, right), static_cast<Id>(nodes_.size()));
    if (fresh) {
        const std::uint32_t low = std::min(shape(left), shape(right));
        const std::uint32_t high = std::max(shape(left), shape(right));
        nodes_.push_back({left, right, number_of_shape(key(low, high))});
    }
    return found->second;
}

std::vector<std::uint32_t> Expressions::leaves(Id id) const {
    std::vector<std::uint32_t> ranks;
    std::vector<Id> stack{id};
    while (!stack.empty()) {
        const Node& node = nodes_[stack.back()];
        stack.pop_back();
        if (node.left == kNone) {
            ranks.push_back(node.right);
        } else {
            stack.push_back(node.right);
            stack.push_back(node.left);
        }
    }
    return ranks;
}

Expressions::Id Expressions::canonical(std::uint32_t world) {
    const FoldTree tree(world);
    std::vector<Id> level;
    for (std::uint32_t group = 0; group < tree.groups(); ++group) {
        const std::uint32_t first = tree.leader(group);
        const Id left = leaf(first);
        level.push_back(tree.is_pair(group) ? fold(left, leaf(first + 1)) : left);
    }
    while (level.size() > 1) {
        for (std::size_t i = 0; i < level.size() / 2; ++i)
            level[i] = fold(level[2 * i], level[2 * i + 1]);
        level.resize(level.size() / 2);
    }
    return level.front();
}

}  // namespace nexar::schedule
