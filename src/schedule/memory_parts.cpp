#include "schedule/memory_parts.hpp"

#include <algorithm>

namespace nexar::schedule {

std::uint64_t longest_put(const Traits& traits, const MemoryUse& use) noexcept {
    switch (traits.puts) {
        case Puts::nothing:
            return 0;
        case Puts::vector:
            return use.count;
        case Puts::chunk:
        case Puts::chunks:
            return use.largest;
    }
    return 0;
}

std::uint64_t memory_extent(const Traits& traits, const MemoryUse& use) noexcept {
    const std::uint64_t whole = longest_put(traits, use);
    const std::uint64_t piece = use.segment == 0 ? whole : std::min(use.segment, whole);
    return traits.puts == Puts::chunks ? piece * use.world : piece;
}

std::uint64_t memory_rounds(const Traits& traits, const MemoryUse& use) noexcept {
    const std::uint64_t whole = longest_put(traits, use);
    if (use.segment == 0 || whole <= use.segment) return 1;
    return whole / use.segment + (whole % use.segment != 0 ? 1 : 0);
}

std::vector<std::uint32_t> phases_of(const Schedule& schedule) {
    std::vector<std::uint32_t> phases(schedule.steps.size());
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const Step& step = schedule.steps[i];
        if (is_message(step.kind)) {
            phases[i] = step.stage + (receives(step.kind) ? 1 : 0);
            continue;
        }
        phases[i] = 1;
        for (const Dependency& d : schedule.dependencies_of(i))
            if (d.step < i) phases[i] = std::max(phases[i], phases[d.step]);
    }
    return phases;
}

std::uint64_t place_of(std::uint32_t i, const Request& request) {
    const std::uint64_t whole = request.chunks.largest();
    return i * (request.segment == 0 ? whole : std::min(request.segment, whole));
}

void MemoryFold::add() {
    if (into_.count == 0) return;
    const Operand all = node(tree_.rounds(), 0, true);
    if (all.incoming) {
        builder_.receive(all.peer, into_);
    } else if (all.slice == own_ && own_ != into_) {
        builder_.copy(own_, into_);
    }
}

MemoryFold::Operand MemoryFold::leaf(std::uint32_t rank) const {
    if (rank == rank_) return {.slice = own_};
    return {.incoming = true, .peer = rank};
}

MemoryFold::Operand MemoryFold::node(std::uint32_t level, std::uint32_t index, bool top) {
    if (level > 0) {
        const Operand left = node(level - 1, 2 * index, false);
        const Operand right = node(level - 1, 2 * index + 1, false);
        return join(left, right, top);
    }
    const std::uint32_t first = tree_.leader(index);
    if (!tree_.is_pair(index)) return leaf(first);
    return join(leaf(first), leaf(first + 1), top);
}

MemoryFold::Operand MemoryFold::join(const Operand& left, const Operand& right, bool top) {
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

Slice MemoryFold::take_register() {
    if (free_.empty()) return builder_.scratch(into_.count);
    const Slice slice = free_.back();
    free_.pop_back();
    return slice;
}

}  // namespace nexar::schedule
