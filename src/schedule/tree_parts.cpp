#include "schedule/tree_parts.hpp"

#include "schedule/fold_tree.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule {

void FoldToRoot::add_to(Builder& builder) const {
    const FoldTree tree(world);
    const std::uint32_t group = tree.group_of(rank);
    Slice current = in;
    const auto fold = [&](std::uint32_t peer) {
        const Slice target = into ? *into : current == in ? builder.scratch(in.count) : current;
        builder.receive_reduce(peer, target, current,
                               peer < rank ? compute::Side::left : compute::Side::right);
        current = target;
    };
    if (tree.is_pair(group)) {
        const std::uint32_t first = tree.leader(group);
        const std::uint32_t holder = root == first + 1 ? root : first;
        if (rank != holder) {
            builder.send(holder, in);
            return;
        }
        fold(rank == first ? first + 1 : first);
    }
    // The rank that holds the fold of the 2^level groups of a block.
    const auto holder = [&](std::uint32_t block, std::uint32_t level) {
        return tree.group_of(root) >> level == block ? root : tree.leader(block << level);
    };
    for (std::uint32_t level = 0; level < tree.rounds(); ++level) {
        const std::uint32_t block = group >> level;
        const std::uint32_t joined = holder(block >> 1U, level + 1);
        if (joined != rank) {
            builder.send(joined, current);
            return;
        }
        fold(holder(block ^ 1U, level));
    }
    if (into) builder.copy(current, *into);  // a world of one
}

void binomial_broadcast(Builder& builder, std::uint32_t world, std::uint32_t rank,
                        std::uint32_t root, const Slice& slice) {
    const Binomial tree(world, root);
    const std::uint32_t position = tree.position(rank);
    if (position != 0) builder.receive(tree.rank(Binomial::parent(position)), slice);
    for (std::uint32_t d = tree.first_child(position); d > 0; d /= 2)
        builder.send(tree.rank(position + d), slice);
}

}  // namespace nexar::schedule
