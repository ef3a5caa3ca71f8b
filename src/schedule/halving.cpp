#include "schedule/halving.hpp"

#include <vector>

namespace nexar::schedule {

Span Halving::held(std::uint32_t rounds) const noexcept {
    Span span{0, tree_.groups()};
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const std::uint32_t middle = (span.begin + span.end) / 2;
        ((group_ >> round & 1U) == 0 ? span.end : span.begin) = middle;
    }
    return span;
}

std::uint32_t Halving::reversed(std::uint32_t x) const noexcept {
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < tree_.rounds(); ++i) result = result << 1U | (x >> i & 1U);
    return result;
}

Window Halving::scratch(Builder& builder, const Chunks& blocks) const {
    if (tree_.is_pair(group_)) return {builder.scratch(blocks.total()), 0};
    const Span half = held(1);
    const std::uint64_t base = blocks.offset(half.begin);
    return {builder.scratch(blocks.offset(half.end) - base), base};
}

void Halving::fold(Builder& builder, const Chunks& blocks, const Slice& in,
                   const Window& window) const {
    if (!is_leader()) {
        builder.send(rank_ - 1, in);
        return;
    }
    Window source{in, 0};
    if (tree_.is_pair(group_)) {
        builder.receive_reduce(rank_ + 1, window.slice, in, compute::Side::right);
        source = window;
    }
    for (std::uint32_t round = 0; round < tree_.rounds(); ++round) {
        const Span before = held(round);
        const Span keep = held(round + 1);
        const Span give = keep.begin == before.begin ? Span{keep.end, before.end}
                                                     : Span{before.begin, keep.begin};
        const bool partner_first = (group_ >> round & 1U) != 0;
        builder.send(partner(round), source.at(blocks, give));
        builder.receive_reduce(partner(round), window.at(blocks, keep), source.at(blocks, keep),
                               partner_first ? compute::Side::left : compute::Side::right);
        source = window;
    }
}

Chunks blocks_of(const FoldTree& tree, const Chunks& chunks) {
    if (tree.pairs() == 0) return chunks;
    std::vector<std::uint64_t> counts(tree.groups());
    for (std::uint32_t group = 0; group < tree.groups(); ++group)
        counts[group] = chunks.offset(tree.leader(group + 1)) - chunks.offset(tree.leader(group));
    return Chunks::of(counts);
}

void HalvingReduceScatter::add_to(Builder& builder) const {
    const FoldTree& tree = halving.tree();
    const std::uint32_t rank = halving.rank();
    halving.fold(builder, blocks_of(tree, chunks), in, window);
    if (halving.is_leader()) {
        const std::uint32_t block = halving.block();
        for (std::uint32_t owner = tree.leader(block); owner < tree.leader(block + 1); ++owner) {
            const Slice folded = window.at(chunks, {owner, owner + 1});
            if (owner == rank)
                builder.copy(folded, result);
            else
                builder.send(owner, folded);
        }
    }
    const std::uint32_t holder = tree.leader(halving.holder(tree.group_of(rank)));
    if (holder != rank) builder.receive(holder, result);
}

}  // namespace nexar::schedule
