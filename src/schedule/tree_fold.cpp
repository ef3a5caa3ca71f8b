#include "schedule/tree_fold.hpp"

namespace nexar::schedule {

void TreeFold::add() {
    if (into_.count == 0) return;
    const Operand all = node(tree_.rounds(), 0, true);
    if (all.incoming) {
        builder_.receive(all.peer, into_);
    } else if (all.slice == own_ && own_ != into_) {
        builder_.copy(own_, into_);
    }
}

TreeFold::Operand TreeFold::leaf(std::uint32_t rank) const {
    if (rank == rank_) return {.slice = own_};
    return {.incoming = true, .peer = rank};
}

TreeFold::Operand TreeFold::node(std::uint32_t level, std::uint32_t index, bool top) {
    if (level > 0) {
        const Operand left = node(level - 1, 2 * index, false);
        const Operand right = node(level - 1, 2 * index + 1, false);
        return join(left, right, top);
    }
    const std::uint32_t first = tree_.leader(index);
    if (!tree_.is_pair(index)) return leaf(first);
    return join(leaf(first), leaf(first + 1), top);
}

TreeFold::Operand TreeFold::join(const Operand& left, const Operand& right, bool top) {
    Operand low = left;
    if (left.incoming && right.incoming) {
        low = {.is_register = true, .slice = take_register()};
        builder_.receive(left.peer, low.slice);
    }
    const bool fresh = !top && !low.is_register && !right.is_register;
    Operand result{.is_register = !top, .slice = into_};
    if (!top) {
        result.slice = fresh ? take_register() : low.is_register ? low.slice : right.slice;
    }
    if (low.incoming) {
        builder_.receive_reduce(low.peer, result.slice, right.slice, compute::Side::left);
    } else if (right.incoming) {
        builder_.receive_reduce(right.peer, result.slice, low.slice, compute::Side::right);
    } else {
        builder_.reduce(right.slice, result.slice, low.slice, compute::Side::right);
    }
    for (const Operand& operand : {low, right}) {
        if (operand.is_register && operand.slice != result.slice) free_.push_back(operand.slice);
    }
    return result;
}

Slice TreeFold::take_register() {
    if (free_.empty()) return builder_.scratch(into_.count);
    const Slice slice = free_.back();
    free_.pop_back();
    return slice;
}

}  // namespace nexar::schedule
