// Reduce: the root gets the fold of all ranks' vectors.
//
// Algorithms: binomial tree (small and medium vectors), reduce-scatter and gather (large vectors).
//
// Terms: `in` is the rank's vector; `out` is the root's result, the same memory as `in` in place;
// a block is the part of the vector that one group folds (halving.hpp). n = world, S = elements of
// the vector.

#include "schedule/reduce.hpp"

#include "schedule/builder.hpp"
#include "schedule/halving.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::reduce {

// Binomial tree: folds towards the root along the canonical tree, for every root (FoldToRoot).
//
//     world 4, root 0    1 -> 0, 3 -> 2, then 2 -> 0
//
// Each rank except the root sends S once, in log2(n) steps. Chosen for small vectors, and with
// segments, which make it a pipeline, for medium ones.
Schedule binomial(const Request& request) {
    Builder builder(request.segment);
    FoldToRoot fold{request.world, request.rank, request.root, input_of(request), {}};
    if (request.is_root()) fold.into = output_of(request);
    fold.add_to(builder);
    return std::move(builder).build();
}

// Reduce-scatter and gather: halving along the canonical tree (halving.hpp); then each group sends
// the block that it folded directly to the root.
//
//     world 4, root 0    0 <-> 1, 2 <-> 3; 0 <-> 2, 1 <-> 3; then 1, 2, 3 -> 0
//
// Each rank sends about S in log2(n) + 1 steps; the longest path of a tree carries S log2(n).
// Chosen for large vectors.
Schedule reduce_scatter_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Halving halving(request.world, request.rank);
    const FoldTree& tree = halving.tree();
    const Chunks blocks = Chunks::even(in.count, tree.groups());
    Builder builder;
    if (request.world == 1) {
        builder.copy(in, out);
        return std::move(builder).build();
    }
    Window window{out, 0};
    if (!request.is_root() && halving.is_leader()) window = halving.scratch(builder, blocks);
    halving.fold(builder, blocks, in, window);
    if (!request.is_root()) {
        const std::uint32_t block = halving.block();
        if (halving.is_leader()) builder.send(request.root, window.at(blocks, {block, block + 1}));
        return std::move(builder).build();
    }
    for (std::uint32_t block = 0; block < tree.groups(); ++block) {
        const std::uint32_t holder = tree.leader(halving.holder(block));
        if (holder != request.rank) builder.receive(holder, chunk(out, blocks, block));
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::reduce
